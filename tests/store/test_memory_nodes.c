/* What the memory store adds for the simulation: several nodes on one disk, and faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/memory/store_memory.h"

static rt_memory_disk *new_disk(void) {
    const rt_store_memory_config config = {.tag = 1};
    rt_memory_disk *disk = rt_memory_disk_new(&config);
    assert_non_null(disk);
    return disk;
}

static rt_store *attach(rt_memory_disk *disk) {
    rt_store *store = NULL;
    assert_int_equal(rt_store_memory_attach(disk, 1, &store, NULL), RT_OK);
    return store;
}

static rt_code put(rt_store *store, const char *name) {
    const rt_doc doc = {.kind = RT_DOC_SETTING, .name = rt_str_of(name), .version = 1, .value = RT_STR("v")};
    const rt_op op = {.kind = RT_OP_DOC, .doc = {.now = &doc}};
    const rt_change change = {.ops = &op, .ops_count = 1};
    return rt_store_apply(store, &change, NULL);
}

static rt_batch_end end_of(rt_store *store, uint64_t no) {
    rt_store_commit(store, no);
    uint64_t told = 0;
    rt_batch_end end = RT_BATCH_FAILED;
    for (int polls = 0; polls < 100 && !rt_store_poll(store, &told, &end, NULL); polls++) {}
    assert_int_equal(told, no);
    return end;
}

static bool is_durable(rt_memory_disk *disk, const char *name) {
    rt_view *view = rt_memory_disk_view(disk);
    assert_non_null(view);
    rt_doc doc;
    const rt_code code = rt_view_doc(view, RT_DOC_SETTING, rt_str_of(name), &doc);
    rt_view_close(view);
    return code == RT_OK;
}

static void nodes__see_what_the_other_committed(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    rt_store *b = attach(disk);
    assert_int_equal(put(a, "x"), RT_OK);
    assert_int_equal(end_of(a, 1), RT_BATCH_DURABLE);
    assert_int_equal(put(b, "x"), RT_E_EXISTS);
    rt_store_close(a);
    rt_store_close(b);
    rt_memory_disk_free(disk);
}

static void nodes__fail_a_batch_when_the_other_was_faster(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    rt_store *b = attach(disk);
    assert_int_equal(put(a, "a"), RT_OK);
    assert_int_equal(put(b, "b"), RT_OK);
    assert_int_equal(end_of(b, 1), RT_BATCH_DURABLE);
    assert_int_equal(end_of(a, 1), RT_BATCH_CONFLICT);
    assert_false(is_durable(disk, "a"));
    assert_int_equal(put(a, "a"), RT_OK);
    assert_int_equal(end_of(a, 2), RT_BATCH_DURABLE);
    assert_true(is_durable(disk, "a") && is_durable(disk, "b"));
    rt_store_close(a);
    rt_store_close(b);
    rt_memory_disk_free(disk);
}

static void crash__loses_the_open_batch_and_its_ids(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    assert_int_equal(put(a, "kept"), RT_OK);
    const rt_id kept = rt_store_new_id(a);
    assert_int_equal(end_of(a, 1), RT_BATCH_DURABLE);
    assert_int_equal(put(a, "lost"), RT_OK);
    const rt_id lost = rt_store_new_id(a);
    rt_store_close(a);
    assert_false(is_durable(disk, "lost"));
    rt_store *again = attach(disk);
    const rt_id next = rt_store_new_id(again);
    assert_true(next > kept);
    assert_true(next == lost); // nobody can have heard of it
    rt_store_close(again);
    rt_memory_disk_free(disk);
}

static void fault__late_ends_are_told_in_order(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    rt_store_memory_set_faults(a, &(const rt_memory_faults){.late = 1000});
    const char *const names[] = {"1", "2", "3"};
    for (uint64_t no = 1; no <= 3; no++) {
        assert_int_equal(put(a, names[no - 1]), RT_OK);
        rt_store_commit(a, no);
    }
    assert_int_equal(rt_store_memory_untold(a), 3);
    uint64_t next = 1;
    for (int polls = 0; polls < 100 && next <= 3; polls++) {
        uint64_t no;
        rt_batch_end end;
        if (!rt_store_poll(a, &no, &end, NULL)) continue;
        assert_int_equal(no, next++);
        assert_int_equal(end, RT_BATCH_DURABLE);
    }
    assert_int_equal(next, 4);
    for (int i = 0; i < 3; i++) assert_true(is_durable(disk, names[i]));
    rt_store_close(a);
    rt_memory_disk_free(disk);
}

static void fault__what_stands_on_a_failed_batch_fails_with_it(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    rt_store_memory_set_faults(a, &(const rt_memory_faults){.late = 1000});
    rt_store_memory_fail_next(a);
    assert_int_equal(put(a, "first"), RT_OK);
    rt_store_commit(a, 1);
    assert_int_equal(put(a, "second"), RT_OK);
    rt_store_commit(a, 2);
    uint32_t failed = 0;
    for (int polls = 0; polls < 100; polls++) {
        uint64_t no;
        rt_batch_end end;
        if (rt_store_poll(a, &no, &end, NULL) && end == RT_BATCH_FAILED) failed++;
    }
    assert_int_equal(failed, 2);
    assert_false(is_durable(disk, "first") || is_durable(disk, "second"));
    rt_store_close(a);
    rt_memory_disk_free(disk);
}

static void fault__records_want_to_be_loaded_first(void **state) {
    (void)state;
    rt_memory_disk *disk = new_disk();
    rt_store *a = attach(disk);
    rt_store_memory_set_faults(a, &(const rt_memory_faults){.again = 1000});
    rt_view *batch = rt_store_batch(a, NULL);
    rt_doc doc;
    assert_int_equal(rt_view_doc(batch, RT_DOC_SETTING, RT_STR("x"), &doc), RT_E_AGAIN);
    assert_int_equal(rt_view_doc(batch, RT_DOC_SETTING, RT_STR("x"), &doc), RT_E_AGAIN);
    assert_int_equal(rt_store_load(a, NULL), RT_OK);
    assert_int_equal(rt_view_doc(batch, RT_DOC_SETTING, RT_STR("x"), &doc), RT_E_ABSENT);
    assert_int_equal(rt_view_doc(batch, RT_DOC_SETTING, RT_STR("y"), &doc), RT_E_AGAIN);
    rt_store_close(a);
    rt_memory_disk_free(disk);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes__see_what_the_other_committed),
        cmocka_unit_test(nodes__fail_a_batch_when_the_other_was_faster),
        cmocka_unit_test(crash__loses_the_open_batch_and_its_ids),
        cmocka_unit_test(fault__late_ends_are_told_in_order),
        cmocka_unit_test(fault__what_stands_on_a_failed_batch_fails_with_it),
        cmocka_unit_test(fault__records_want_to_be_loaded_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
