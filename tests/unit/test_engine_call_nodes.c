/* Rate, concurrency, pace and circuit of an event type where two nodes share a store: together as one node would. */
#include "base/pack.h"
#include "call_rig.h"
#include "engine/calls/window.h"
#include "engine/machine/machine.h"

enum { TICK_MS = 10 };

static uint32_t under_way(const rig n[2]) { return n[0].count + n[1].count; }
static uint32_t started(const rig n[2]) { return n[0].started + n[1].started; }

static void answer_all(rig n[2], uint16_t status) {
    rig_answer_all(&n[0], status);
    rig_answer_all(&n[1], status);
}

/* Both go on, and targets answer all that is under way at each tick. */
static void work(rig n[2], int64_t ms, uint16_t status) {
    for (int64_t passed = 0; passed < ms; passed += TICK_MS) {
        rig_pass_both(n, TICK_MS);
        answer_all(n, status);
    }
}

static rt_counts counts_of(rig *r) {
    rt_counts counts;
    rt_view *v = rt_memory_disk_view(r->disk);
    assert_int_equal(rt_view_counts(v, rig_queue(r).id, &counts), RT_OK);
    rt_view_close(v);
    return counts;
}

/* ---- rate and pace ------------------------------------------------------------------------------------- */

static void nodes__share_a_rate(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("http://t/");
    like.rate_per_s = 10;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 50, NULL);
    work(n, 200, 200);
    assert_in_range(started(n), 10, 12); // ten at once, and one every tenth of a second
    work(n, 2800, 200);
    assert_in_range(started(n), 36, 40); // never more than 10 + 3 x 10
    work(n, 2000, 200);
    assert_int_equal(counts_of(&n[0]).done, 50);
}

static void nodes__share_a_rate_of_workers(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("");
    like.rate_per_s = 5;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 20, NULL);
    assert_int_equal(rig_claim(&n[0], 3).count, 3);
    assert_int_equal(rig_claim(&n[1], 20).count, 2);
    assert_int_equal(rig_claim(&n[0], 20).count, 0);
    rig_pass_both(n, 400);
    assert_int_equal(rig_claim(&n[1], 20).count, 2);
    assert_int_equal(rig_claim(&n[0], 20).count, 0);
}

static void nodes__share_a_pace(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("");
    like.circuit.enabled = false;
    like.pace = (rt_pace_settings){.enabled = true, .initial_ms = 1000, .maximum_ms = 4000};
    rig_put(&n[0], like);
    rig_schedule(&n[0], 20, NULL);
    const rt_call_claim c = rig_claim(&n[0], 1);
    rig_end(&n[0], &c.calls[0], RT_CALL_FAIL);
    assert_int_equal(rig_claim(&n[1], 5).count, 0);
    rig_pass_both(n, 1000);
    assert_int_equal(rig_claim(&n[1], 5).count, 1);
    assert_int_equal(rig_claim(&n[0], 5).count, 0); // a pace behind the start at the other node
    rig_pass_both(n, 1000);
    assert_int_equal(rig_claim(&n[0], 5).count, 1);
}

/* ---- concurrency --------------------------------------------------------------------------------------- */

static void nodes__share_a_concurrency(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("http://t/");
    like.concurrency = 3;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 100, NULL);
    for (int i = 0; i < 200; i++) {
        rig_pass_both(n, TICK_MS);
        assert_true(under_way(n) <= 3);
        if (i % 3 == 0 && n[i % 2].count > 0) rig_answer(&n[i % 2], 200, 0);
    }
    rig_pass_both(n, 300);
    assert_int_equal(under_way(n), 3);
    work(n, 8000, 200);
    assert_int_equal(counts_of(&n[0]).done, 100);
}

static void nodes__share_a_concurrency_of_workers(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("");
    like.concurrency = 3;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 10, NULL);
    const rt_call_claim c = rig_claim(&n[0], 2);
    assert_int_equal(c.count, 2);
    assert_int_equal(rig_claim(&n[1], 10).count, 1);
    assert_int_equal(rig_claim(&n[1], 10).count, 0);
    rig_end(&n[1], &c.calls[0], RT_CALL_FINISH); // at either node
    assert_int_equal(rig_claim(&n[1], 10).count, 1);
}

/* What a node that died had under way stands far behind all that waits for its place. */
static void nodes__that_die_give_back_their_places(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("http://t/");
    like.concurrency = 2;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 100, NULL);
    assert_int_equal(n[0].count, 2);
    rig_restart(&n[0]);
    rig_pass_both(n, 7000);
    assert_int_equal(under_way(n), 0); // their leases last for eight seconds
    rig_pass_both(n, 2000);
    assert_int_equal(under_way(n), 2);
}

/* The first is always faster to take the place that it left itself. */
static void nodes__that_are_left_out_ask_for_a_place(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("http://t/");
    like.concurrency = 1;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 450, NULL);
    for (int i = 0; i < 400; i++) {
        rig_pass_both(n, TICK_MS);
        assert_true(under_way(n) <= 1);
        answer_all(n, 200);
    }
    assert_true(n[0].started > 50 && n[1].started > 50);
    assert_true(started(n) > 300); // and little is lost by that
}

/* ---- circuit ------------------------------------------------------------------------------------------- */

/* At this node so many calls end so. */
static void learn(rig *r, uint32_t count, rt_call_verb verb) {
    for (uint32_t i = 0; i < count; i++) {
        const rt_call_claim c = rig_claim(r, 1);
        assert_int_equal(c.count, 1);
        rig_end(r, &c.calls[0], verb);
    }
}

static void put_watched(rig *r, uint32_t minimum_attempts) {
    rt_call_type like = rig_type("");
    like.circuit.minimum_attempts = minimum_attempts;
    rig_put(r, like);
    rig_schedule(r, 100, NULL);
}

static void nodes__open_a_circuit_together(void **state) {
    rig *n = *state;
    put_watched(&n[0], 20);
    learn(&n[0], 10, RT_CALL_FAIL);
    learn(&n[1], 9, RT_CALL_FAIL);
    rig_pass_both(n, 2000);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_CLOSED); // nineteen say nothing yet
    learn(&n[1], 1, RT_CALL_FAIL);
    rig_pass_both(n, 1250);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_OPEN);
}

/* A worker may tell another node than the one it was given the call by. */
static void nodes__learn_of_calls_that_others_gave_out(void **state) {
    rig *n = *state;
    put_watched(&n[0], 20);
    const rt_call_claim c = rig_claim(&n[0], 20);
    for (uint32_t i = 0; i < 20; i++) rig_end(&n[1], &c.calls[i], RT_CALL_FAIL);
    rig_pass_both(n, 1250);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_OPEN);
}

static void nodes__forget_together_what_has_left_the_window(void **state) {
    rig *n = *state;
    put_watched(&n[0], 20); // in ten seconds
    learn(&n[0], 10, RT_CALL_FAIL);
    rig_pass_both(n, 11000);
    learn(&n[1], 10, RT_CALL_FAIL);
    rig_pass_both(n, 2000);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_CLOSED);
}

/* For one that knows only its own that would be enough. */
static void nodes__speak_for_a_target_that_fails_elsewhere(void **state) {
    rig *n = *state;
    put_watched(&n[0], 20);
    learn(&n[1], 30, RT_CALL_FINISH);
    rig_pass_both(n, 1000);
    learn(&n[0], 20, RT_CALL_FAIL);
    assert_int_equal(rig_claim(&n[0], 1).count, 0); // enough for it, until the other one is heard
    rig_pass_both(n, 1000);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_CLOSED); // 20 of 50
    assert_int_equal(rig_claim(&n[0], 1).count, 1);
}

typedef struct stored {
    uint64_t version;
    unsigned char bytes[256];
    size_t len;
} stored;

/* The document of the type's queue. */
static stored read_doc(rig *n, rt_doc_kind kind) {
    rt_doc doc;
    unsigned char name[8];
    rt_put_be64(name, rig_queue(n).id);
    rt_view *v = rt_memory_disk_view(n[0].disk);
    assert_int_equal(rt_view_doc(v, kind, (rt_str){.ptr = (const char *)name, .len = 8}, &doc), RT_OK);
    stored out = {.version = doc.version, .len = doc.value.len};
    assert_true(out.len <= sizeof out.bytes);
    memcpy(out.bytes, doc.value.ptr, out.len);
    rt_view_close(v);
    return out;
}

static void nodes__show_what_all_have_counted(void **state) {
    rig *n = *state;
    put_watched(&n[0], 20);
    rt_circuit_counts c;
    learn(&n[1], 5, RT_CALL_FINISH);
    rig_pass_both(n, 2000);
    rt_view *v = rt_memory_disk_view(n[0].disk);
    rt_queue queue = rig_queue(&n[0]);
    assert_int_equal(rt_read_window(v, &queue, n[0].now_ms, &c), RT_E_ABSENT); // all goes well: nothing is written
    rt_view_close(v);
    learn(&n[0], 3, RT_CALL_FAIL);
    rig_pass_both(n, 1500);
    v = rt_memory_disk_view(n[0].disk);
    assert_int_equal(rt_read_window(v, &queue, n[0].now_ms, &c), RT_OK);
    assert_int_equal(c.attempts, 8);
    assert_int_equal(c.failures, 3);
    assert_int_equal(c.slow, 0);
    assert_int_equal(rt_read_window(v, &queue, n[0].now_ms + 11000, &c), RT_E_ABSENT); // all that was bad is forgotten
    queue.brakes.circuit_since_ms = n[0].now_ms; // it has been open meanwhile
    assert_int_equal(rt_read_window(v, &queue, n[0].now_ms, &c), RT_E_ABSENT);
    rt_view_close(v);
}

static void nodes__write_once_a_second_at_most(void **state) {
    rig *n = *state;
    put_watched(&n[0], 1000);
    for (int i = 0; i < 50; i++) { // five seconds
        learn(&n[0], 1, RT_CALL_FAIL);
        rig_pass_both(n, 100);
    }
    assert_in_range(read_doc(n, RT_DOC_CALL_WINDOW).version, 4, 6);
}

/* ---- stored forms -------------------------------------------------------------------------------------- */

/* Little endian, as packed. */
static void assert_numbers(const unsigned char *bytes, size_t width, const uint64_t want[], size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        for (size_t k = 0; k < width; k++) number |= (uint64_t)bytes[i * width + k] << (8 * k);
        assert_int_equal(number, want[i]);
    }
}

static void stored__starts_of_a_queue(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("");
    like.rate_per_s = 10;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 5, NULL);
    assert_int_equal(rig_claim(&n[0], 3).count, 3);
    stored doc = read_doc(n, RT_DOC_CALL_STARTS);
    assert_int_equal(doc.len, 1 + 7 * 8);
    assert_int_equal(doc.bytes[0], 1); // its form
    assert_numbers(doc.bytes + 1, 8, (const uint64_t[]){START_MS, 3000000, 0, 0, START_MS, 0, 0}, 7);
    rig_pass_both(n, 150); // one and a half are earned back
    assert_int_equal(rig_claim(&n[1], 1).count, 1);
    doc = read_doc(n, RT_DOC_CALL_STARTS);
    assert_numbers(doc.bytes + 1, 8, (const uint64_t[]){START_MS + 150, 2500000, 0, 0, START_MS + 150}, 5);
}

static void stored__window_of_a_queue(void **state) {
    rig *n = *state;
    put_watched(&n[0], 1000); // ten seconds, so START_MS is the first of slice 1000
    learn(&n[0], 1, RT_CALL_FAIL);
    const stored doc = read_doc(n, RT_DOC_CALL_WINDOW);
    assert_int_equal(doc.len, 1 + 4 + 3 * 8 + 30 * 4);
    assert_int_equal(doc.bytes[0], 1);
    assert_numbers(doc.bytes + 1, 4, (const uint64_t[]){10}, 1);
    assert_numbers(doc.bytes + 5, 8, (const uint64_t[]){0, START_MS, 1000}, 3);
    assert_numbers(doc.bytes + 29, 4, (const uint64_t[30]){1, 1}, 30); // attempts, failures, slow of slice 1000
}

/* ---- half-open, and after ------------------------------------------------------------------------------ */

static void nodes__share_probes(void **state) {
    rig *n = *state;
    rig_put(&n[0], rig_type("http://t/"));
    rig_schedule(&n[0], 40, NULL);
    for (int i = 0; i < 200 && rig_circuit(&n[0]) == RT_CIRCUIT_CLOSED; i++) work(n, TICK_MS, 503);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_OPEN);
    answer_all(n, 503);
    const uint32_t before = started(n);
    rig_pass_both(n, 6000);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_HALF_OPEN);
    assert_int_equal(under_way(n), 2); // as many as they trust it with: one each
    for (int i = 0; i < 3; i++) {
        assert_true(started(n) - before <= 3);
        rig_answer(n[0].count > 0 ? &n[0] : &n[1], 200, 0);
        if (i < 2) rig_pass_both(n, 500);
    }
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_CLOSED);
}

static void nodes__share_the_rate_of_release(void **state) {
    rig *n = *state;
    rt_call_type like = rig_type("http://t/");
    like.circuit.release_per_s = 10;
    like.circuit.probes = 1;
    rig_put(&n[0], like);
    rig_schedule(&n[0], 100, NULL);
    for (int i = 0; i < 200 && rig_circuit(&n[0]) == RT_CIRCUIT_CLOSED; i++) work(n, TICK_MS, 503);
    answer_all(n, 503);
    rig_pass_both(n, 6000);
    answer_all(n, 200);
    assert_int_equal(rig_circuit(&n[0]), RT_CIRCUIT_CLOSED);
    const uint32_t before = started(n);
    work(n, 3000, 200);
    assert_in_range(started(n) - before, 34, 40);
}

/* ---- one node ------------------------------------------------------------------------------------------ */

static bool fail_test(void *ctx, const rt_doc *doc) {
    (void)ctx;
    (void)doc;
    fail_msg("a document is written");
    return false;
}

static void one_node__writes_nothing_for_others(void **state) {
    rig *r = *state;
    rt_call_type like = rig_type("http://t/");
    like.rate_per_s = 5;
    like.concurrency = 2;
    rig_put(r, like);
    rig_schedule(r, 20, NULL);
    for (int i = 0; i < 20; i++) {
        rig_pass(r, 200);
        rig_answer_all(r, i % 3 == 0 ? 503 : 200);
    }
    rt_view *v = rt_memory_disk_view(r->disk);
    for (rt_doc_kind kind = RT_DOC_CALL_STARTS; kind <= RT_DOC_CALL_WINDOW; kind++)
        assert_int_equal(rt_view_docs(v, kind, RT_STR_EMPTY, RT_STR_EMPTY, fail_test, NULL), RT_OK);
    rt_view_close(v);
}

/* ---- records of two moments ---------------------------------------------------------------------------- */

typedef struct reading {
    rt_command cmd;
    uint32_t decided, torn; /* so many times what it reads does not fit together */
} reading;

static rt_code decide_reading(rt_tx *tx, rt_command *cmd) {
    reading *r = (reading *)cmd;
    return r->decided++ < r->torn ? rt_fail(tx->err, RT_E_CORRUPT, 0, "two moments") : RT_OK;
}

static void nodes__read_again_what_does_not_fit_together(void **state) {
    rig *n = *state;
    reading once = {.cmd = {.decide = decide_reading}, .torn = 1};
    assert_int_equal(rig_run(&n[0], &once.cmd), RT_OK);
    assert_int_equal(once.decided, 2);
    reading always = {.cmd = {.decide = decide_reading}, .torn = UINT32_MAX};
    assert_int_equal(rig_run(&n[0], &always.cmd), RT_E_CORRUPT);
    assert_int_equal(always.decided, 2);
}

/* What is made was not there when it was looked for, and is there when it is written. */
static rt_code decide_making(rt_tx *tx, rt_command *cmd) {
    reading *r = (reading *)cmd;
    const rt_doc doc = {.kind = RT_DOC_SETTING, .name = RT_STR("made"), .value = RT_STR("by somebody")};
    if (r->decided++ < r->torn) rt_tx_put_doc(tx, NULL, &doc);
    return RT_OK;
}

static void nodes__look_again_when_others_made_what_they_make(void **state) {
    rig *n = *state;
    reading first = {.cmd = {.decide = decide_making}, .torn = 1};
    assert_int_equal(rig_run(&n[1], &first.cmd), RT_OK);
    assert_int_equal(first.decided, 1);
    reading second = {.cmd = {.decide = decide_making}, .torn = 1};
    assert_int_equal(rig_run(&n[0], &second.cmd), RT_OK);
    assert_int_equal(second.decided, 2);
}

static void note_end(rt_command *cmd) { *(bool *)cmd->ctx = true; }

static void nodes__give_up_nothing_of_their_own_for_what_does_not_fit_together(void **state) {
    rig *n = *state;
    bool ended = false;
    reading r = {.cmd = {.decide = decide_reading, .done = note_end, .ctx = &ended}, .torn = 1};
    rt_command_list_push(&n[0].engine->own, &r.cmd);
    for (int i = 0; i < 10 && !ended; i++) rig_pass(&n[0], 1);
    assert_true(ended);
    assert_int_equal(r.cmd.code, RT_OK);
    assert_int_equal(r.decided, 2);
}

static void one_node__reads_once_what_does_not_fit_together(void **state) {
    reading r = {.cmd = {.decide = decide_reading}, .torn = 1};
    assert_int_equal(rig_run(*state, &r.cmd), RT_E_CORRUPT);
    assert_int_equal(r.decided, 1);
}

#define BOTH(f) cmocka_unit_test_setup_teardown(f, rig_setup_both, rig_teardown_both)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(nodes__share_a_rate),
        BOTH(nodes__share_a_rate_of_workers),
        BOTH(nodes__share_a_pace),
        BOTH(nodes__share_a_concurrency),
        BOTH(nodes__share_a_concurrency_of_workers),
        BOTH(nodes__that_are_left_out_ask_for_a_place),
        BOTH(nodes__that_die_give_back_their_places),
        BOTH(nodes__open_a_circuit_together),
        BOTH(nodes__learn_of_calls_that_others_gave_out),
        BOTH(nodes__forget_together_what_has_left_the_window),
        BOTH(nodes__speak_for_a_target_that_fails_elsewhere),
        BOTH(nodes__show_what_all_have_counted),
        BOTH(nodes__write_once_a_second_at_most),
        BOTH(stored__starts_of_a_queue),
        BOTH(stored__window_of_a_queue),
        BOTH(nodes__share_probes),
        BOTH(nodes__share_the_rate_of_release),
        BOTH(nodes__look_again_when_others_made_what_they_make),
        BOTH(nodes__read_again_what_does_not_fit_together),
        BOTH(nodes__give_up_nothing_of_their_own_for_what_does_not_fit_together),
        cmocka_unit_test_setup_teardown(one_node__writes_nothing_for_others, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(one_node__reads_once_what_does_not_fit_together, rig_setup, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
