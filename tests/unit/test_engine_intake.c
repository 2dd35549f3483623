/* Records of a log taken over as calls: once, all or none, and by nobody who is late. */
#include "call_kit.h"
#include "engine/calls/intake.h"

static void make_type(kit *k, const char *name) { assert_int_equal(call_put(k, name, call_type_pull()), RT_OK); }

static rt_intake_record record(const char *type, const char *id, const char *payload) {
    return (rt_intake_record){.item = {.type = rt_str_of(type),
                                       .key = rt_str_of(id),
                                       .payload = rt_str_of(payload),
                                       .content_type = RT_STR_EMPTY,
                                       .reason = RT_STR_EMPTY,
                                       .order_key = RT_STR_EMPTY}};
}

static rt_intake intake(int64_t from, int64_t to, rt_intake_record *records, uint32_t count) {
    rt_intake c;
    rt_intake_init(&c);
    c.tenant = RT_STR("p");
    c.log = RT_STR("cluster\0topic\0000");
    c.from = from;
    c.to = to;
    c.records = records;
    c.count = count;
    return c;
}

static int64_t offset(kit *k) {
    int64_t offset = -2;
    assert_int_equal(rt_intake_offset(kit_view(k), RT_STR("cluster\0topic\0000"), &offset), RT_OK);
    return offset;
}

static int64_t waiting(kit *k) {
    const rt_counts c = kit_counts(k, 0);
    return c.ready + c.scheduled + c.free;
}

static void intake__moves_the_offset_with_the_calls(void **state) {
    kit *k = *state;
    make_type(k, "t");
    assert_int_equal(offset(k), -1);
    rt_intake_record records[] = {record("t", "", "a"), record("t", "", "b")};
    rt_intake c = intake(-1, 17, records, 2); // offsets need not be without gaps
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(offset(k), 17);
    assert_int_equal(waiting(k), 2);
    c = intake(17, 18, records, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(offset(k), 18);
    assert_int_equal(waiting(k), 3);
}

static void intake__takes_nothing_twice(void **state) {
    kit *k = *state;
    make_type(k, "t");
    rt_intake_record records[] = {record("t", "", "a")};
    rt_intake c = intake(-1, 1, records, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    c = intake(-1, 1, records, 1); // whose answer was lost, or of a node that is late
    assert_int_equal(kit_run(k, &c.cmd), RT_E_FENCED);
    c = intake(0, 2, records, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_E_FENCED);
    assert_int_equal(offset(k), 1);
    assert_int_equal(waiting(k), 1);
}

static void intake__goes_back_when_the_log_was_made_anew(void **state) {
    kit *k = *state;
    make_type(k, "t");
    rt_intake_record records[] = {record("t", "", "a")};
    rt_intake c = intake(-1, 100, records, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    c = intake(100, 1, records, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(offset(k), 1);
}

static void intake__says_of_each_record_why_it_can_be_no_call(void **state) {
    kit *k = *state;
    make_type(k, "t");
    rt_intake_record first[] = {record("t", "7", "a")};
    rt_intake c = intake(-1, 1, first, 1);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);

    static char large[RT_BODY_BYTES_MAX + 1];
    rt_intake_record records[] = {record("t", "", "fine"), record("nobody", "", "x"), record("t", "7", "another"),
                                  record("t", "", "")};
    records[3].item.payload = (rt_str){.ptr = large, .len = sizeof large};
    c = intake(1, 5, records, 4);
    assert_int_equal(kit_run(k, &c.cmd), RT_E_INVALID);
    assert_int_equal(c.refused, 3);
    assert_int_equal(records[0].refused, RT_OK);
    assert_int_equal(records[1].refused, RT_E_ABSENT);
    assert_int_equal(records[2].refused, RT_E_FENCED);
    assert_int_equal(records[3].refused, RT_E_TOO_LARGE);
    assert_int_equal(offset(k), 1); // nothing of it has happened
    assert_int_equal(waiting(k), 1);

    for (int i = 1; i < 4; i++) records[i].aside = true;
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(c.refused, 0);
    assert_int_equal(offset(k), 5);
    assert_int_equal(waiting(k), 2);
}

static void intake__knows_ids_again(void **state) {
    kit *k = *state;
    make_type(k, "t");
    rt_intake_record records[] = {record("t", "7", "a"), record("t", "8", "b"), record("t", "7", "a")};
    rt_intake c = intake(-1, 3, records, 3);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(c.existed, 1);
    assert_true(records[2].item.existed);
    assert_int_equal(waiting(k), 2);
}

static void intake__takes_many_of_one_order_key_at_once(void **state) {
    kit *k = *state;
    static rt_intake_record records[RT_INTAKE_RECORDS_MAX];
    make_type(k, "t");
    for (int i = 0; i < RT_INTAKE_RECORDS_MAX; i++) {
        records[i] = record("t", "", "x");
        records[i].item.order_key = RT_STR("account 7");
    }
    rt_intake c = intake(-1, RT_INTAKE_RECORDS_MAX, records, RT_INTAKE_RECORDS_MAX);
    assert_int_equal(kit_run(k, &c.cmd), RT_OK);
    assert_int_equal(waiting(k), RT_INTAKE_RECORDS_MAX);
    assert_int_equal(kit_counts(k, 0).free, 1); // the head of the line
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KIT_BOTH(intake__moves_the_offset_with_the_calls),
        KIT_BOTH(intake__takes_nothing_twice),
        KIT_BOTH(intake__goes_back_when_the_log_was_made_anew),
        KIT_BOTH(intake__says_of_each_record_why_it_can_be_no_call),
        KIT_BOTH(intake__knows_ids_again),
        KIT_BOTH(intake__takes_many_of_one_order_key_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
