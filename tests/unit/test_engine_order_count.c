/* How many orders a project has, kept in the changes that make and delete them. */
#include "engine/common/name.h"
#include "engine/orders/order_count.h"
#include "order_rig.h"

/* -1: not counted. */
static int count(rig *r, const char *tenant) {
    int64_t total = -1;
    rt_view *view = rt_memory_disk_view(r->disk);
    assert_non_null(view);
    const rt_code code = rt_read_order_count(view, rt_str_of(tenant), &total);
    rt_view_close(view);
    assert_true(code == RT_OK || code == RT_E_ABSENT);
    return (int)total;
}

/* As if all orders were older than counting. */
static rt_code decide_forget(rt_tx *tx, rt_command *cmd) {
    (void)cmd;
    for (rt_id number = 0; number < RT_ORDER_COUNTS_MAX; number++) {
        rt_doc doc;
        const rt_code code =
            rt_doc_load(tx, RT_DOC_ORDER_COUNT, rt_name_id(tx->arena, RT_STR("p"), number), &doc);
        if (code == RT_OK) rt_tx_put_doc(tx, &doc, NULL);
        else if (code != RT_E_ABSENT) return code;
    }
    return RT_OK;
}

static void forget(rig *r) {
    rt_command cmd = {.decide = decide_forget};
    assert_int_equal(rig_run(r, &cmd), RT_OK);
    assert_int_equal(count(r, "p"), -1);
}

static rt_code setup_type(rig *r) { return rig_put_type(r, "key", rig_like("plugin:key")); }

static void count__follows_orders_as_they_come_and_go(void **state) {
    rig *r = *state;
    assert_int_equal(setup_type(r), RT_OK);
    assert_int_equal(count(r, "p"), -1);
    const rt_id one = rig_create(r, "key");
    const rt_id two = rig_create(r, "key");
    assert_int_equal(count(r, "p"), 2);
    rig_say(r, "{\"action\": \"done\"}"); // that one has ended is no matter
    assert_int_equal(count(r, "p"), 2);
    assert_int_equal(rig_delete(r, one), RT_OK);
    assert_int_equal(count(r, "p"), 1);
    assert_int_equal(rig_delete(r, one), RT_E_ABSENT);
    assert_int_equal(count(r, "p"), 1);
    assert_int_equal(rig_delete(r, two), RT_OK);
    assert_int_equal(count(r, "p"), 0);
    rig_create(r, "key");
    assert_int_equal(count(r, "p"), 1);
    assert_int_equal(count(r, "q"), -1);
}

static void count__is_a_sum_over_the_nodes_that_wrote_it(void **state) {
    rig *r = *state;
    assert_int_equal(setup_type(r), RT_OK);
    rt_id made[4];
    for (int i = 0; i < 4; i++) {
        made[i] = rig_create(r, "key");
        rig_restart(r); // as another node
    }
    assert_int_equal(count(r, "p"), 4);
    for (int i = 0; i < 3; i++) assert_int_equal(rig_delete(r, made[i]), RT_OK);
    assert_int_equal(count(r, "p"), 1);
    assert_true(rig_docs(r, RT_DOC_ORDER_COUNT) <= RT_ORDER_COUNTS_MAX);
}

static void count__has_one_document_where_one_node_owns_the_store(void **state) {
    rig *r = *state;
    assert_int_equal(setup_type(r), RT_OK);
    for (int i = 0; i < 3; i++) {
        rig_create(r, "key");
        rig_restart(r);
    }
    assert_int_equal(count(r, "p"), 3);
    assert_int_equal(rig_docs(r, RT_DOC_ORDER_COUNT), 1);
}

static void count__begins_once_the_orders_that_are_older_are_gone(void **state) {
    rig *r = *state;
    assert_int_equal(setup_type(r), RT_OK);
    const rt_id one = rig_create(r, "key");
    forget(r);
    const rt_id two = rig_create(r, "key");
    assert_int_equal(count(r, "p"), -1);
    assert_int_equal(rig_delete(r, one), RT_OK);
    assert_int_equal(count(r, "p"), -1);
    assert_int_equal(rig_delete(r, two), RT_OK);
    assert_int_equal(count(r, "p"), -1);
    rig_create(r, "key");
    assert_int_equal(count(r, "p"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_BOTH(count__follows_orders_as_they_come_and_go),
        RIG_BOTH(count__is_a_sum_over_the_nodes_that_wrote_it),
        RIG_SOLE(count__has_one_document_where_one_node_owns_the_store),
        RIG_BOTH(count__begins_once_the_orders_that_are_older_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
