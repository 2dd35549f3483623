/* The plugin executor against a plugin that behaves, and against all that plugins do instead. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/clock.h"
#include "plugin_rig.h"

static void assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void closed(plugin_rig *r) {
    rig_close(r);
    assert_no_children();
}

static void pause_ms(long ms) { (void)nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

/* Gone, or a zombie that only its new parent can bury. */
static bool is_gone(int pid) {
    char path[64], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) return true;
    const int fields = fscanf(f, "%*d %*s %c", &state);
    (void)fclose(f);
    return fields != 1 || state == 'Z' || state == 'X';
}

static void wait_gone(int pid) {
    for (int i = 0; i < 2000 && !is_gone(pid); i++) pause_ms(5);
    assert_true(is_gone(pid));
}

/* The process that makes a run. */
static int pid_of(plugin_rig *r, const char *name, unsigned *runs) {
    rt_outcome o = rig_run(r, name, "describe", NULL);
    const char *text = o.answer != NULL ? strstr(o.answer, "\"state\":\"") : NULL;
    assert_non_null(text);
    int pid = 0;
    assert_int_equal(sscanf(text, "\"state\":\"%d %u|", &pid, runs), 2);
    free(o.answer);
    return pid;
}

static void plugin__runs_are_told_all_and_answer(void **state) {
    (void)state;
    const rt_plugin_setting settings[] = {
        {RT_STR("odd"), RT_STR("colour"), RT_STR("d\xc3\xbcster")},
        {RT_STR("other"), RT_STR("colour"), RT_STR("hell")},
    };
    plugin_rig *r = rig_open((rt_plugins_config){.settings = settings, .settings_count = 2}, PLUGINS_DIR);
    rig_start_body(r, 1, "odd",
                   "{\"order\":\"0a0b\",\"type\":\"lamp\",\"task\":\"describe\",\"args\":[1,\"x\"],"
                   "\"kwargs\":{\"k\":null},"
                   "\"meta\":{\"a\":[2.5]},\"state\":\"before\",\"attempt\":3,\"token\":\"00ff\","
                   "\"deadline\":4000000000000,"
                   "\"verb\":\"run\"}",
                   20000);
    rt_outcome o = rig_wait(r, 1);
    rig_assert_answer(&o, " 1|0a0b|lamp|[1,\\\"x\\\"]|{\\\"k\\\":null}|{\\\"a\\\":[2.5]}|before|3|00ff|"
                          "4000000000000|d\xc3\xbcster\"");
    o = rig_run(r, "other", "describe", NULL);
    rig_assert_answer(&o, "|hell\"");
    o = rig_run(r, "odd", "neither of them", NULL); // no reply at all
    rig_assert_answer(&o, "{\"action\":\"unavailable\"}");
    closed(r);
}

static void plugin__processes_are_used_again(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    unsigned runs;
    const int pid = pid_of(r, "odd", &runs);
    assert_int_equal(runs, 1);
    assert_int_equal(pid_of(r, "odd", &runs), pid);
    assert_int_equal(runs, 2);
    assert_int_not_equal(pid_of(r, "other", &runs), pid);
    closed(r);
    assert_true(is_gone(pid));
}

static void plugin__what_goes_wrong_is_an_outcome(void **state) {
    (void)state;
    static const struct {
        const char *task;
        rt_reason reason;
        const char *text;
    } rows[] = {
        {"crash", RT_REASON_CRASHED, "the plugin's process "}, // sanitizers have a word in how
        {"abort", RT_REASON_CRASHED, "the plugin's process killed by signal 6 (Aborted)"},
        {"exit", RT_REASON_CRASHED, "the plugin's process exited with status 7"},
        {"close", RT_REASON_CRASHED, "the plugin's process hung up"},
        {"garbage", RT_REASON_NONSENSE, "wrote what is no answer"},
        {"claim_huge", RT_REASON_NONSENSE, "wrote what is no answer"},
        {"huge", RT_REASON_BROKEN, "the answer is longer than 4096 bytes"},
        {"not_utf8", RT_REASON_NONSENSE, "state is not UTF-8"},
    };
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_outcome o = rig_run(r, "odd", rows[i].task, NULL);
        rig_assert_failed(&o, rows[i].reason, rows[i].text);
        o = rig_run(r, "odd", "describe", NULL); // and the next one finds a process that works
        rig_assert_answer(&o, "\"action\":\"done\"");
    }
    rig_start_body(r, 1, "odd", "this is no run", 20000);
    const rt_outcome o = rig_wait(r, 1);
    rig_assert_failed(&o, RT_REASON_NONSENSE, "the run is no JSON object");
    closed(r);
}

static void plugin__who_talks_without_being_asked_is_killed(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){.processes = 1}, PLUGINS_DIR);
    rt_outcome o = rig_run(r, "odd", "flood", NULL); // its first answer is one
    rig_assert_answer(&o, "{}");
    rig_wait_log(r, "odd: the plugin's process spoke without being asked: killed\n");
    // It counts as a start that failed, or it would be killed and started without end; the pause is 100 ms.
    do {
        pause_ms(10);
        o = rig_run(r, "odd", "describe", NULL);
    } while (o.reason == RT_REASON_NONSENSE);
    rig_assert_answer(&o, "\"action\":\"done\"");
    closed(r);
}

static void plugin__without_a_plugin_there_is_a_reason(void **state) {
    (void)state;
    static const struct {
        const char *name;
        rt_reason reason;
        const char *text;
    } rows[] = {
        {"missing", RT_REASON_NO_PLUGIN, "there is no file " PLUGINS_DIR "/missing.so"},
        {"", RT_REASON_NO_PLUGIN, "a plugin's name is "},
        {"../odd", RT_REASON_NO_PLUGIN, "a plugin's name is "},
        {"Odd", RT_REASON_NO_PLUGIN, "a plugin's name is "},
        {"odd.so", RT_REASON_NO_PLUGIN, "a plugin's name is "},
        {"a123456789b123456789c123456789d123456789e123456789f123456789g1234", RT_REASON_NO_PLUGIN,
         "a plugin's name is "},
        {"a123456789b123456789c123456789d123456789e123456789f123456789g123", RT_REASON_NO_PLUGIN,
         "there is no file "},
        {"old_abi", RT_REASON_NO_PLUGIN, "old_abi.so: was built for ABI 0, this is 1"},
        {"no_plugin", RT_REASON_NO_PLUGIN, "no_plugin.so: no symbol retryd_plugin_v1"},
        {"init_refuses", RT_REASON_NO_PLUGIN, "init says: no smartcard in the reader"},
        {"init_crashes", RT_REASON_CRASHED, "while it started"},
        {"load_crashes", RT_REASON_CRASHED, "while it started"},
        {"load_talks", RT_REASON_NONSENSE, "wrote what is no answer"},
    };
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_outcome o = rig_run(r, rows[i].name, "describe", NULL);
        rig_assert_failed(&o, rows[i].reason, rows[i].text);
    }
    closed(r);
}

/* After a failed start there is a pause, 100 ms at first; who comes meanwhile is told at once, and nothing is
 * started. */
static void plugin__a_broken_plugin_is_not_started_again_and_again(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){.processes = 1}, PLUGINS_DIR);
    const int64_t began_ms = rt_mono_ms();
    int64_t took_ms = 0;
    int tried = 0;
    while (took_ms < 1000) {
        const rt_outcome o = rig_run(r, "init_refuses", "describe", NULL);
        rig_assert_failed(&o, RT_REASON_NO_PLUGIN, "no smartcard");
        tried++;
        pause_ms(10);
        took_ms = rt_mono_ms() - began_ms;
    }
    // At 0, 100, 300 and 700 ms, or later; the next one at 1500 only if the last try was slow to get there.
    int starts = 0;
    for (const char *at = r->log; (at = strstr(at, "no smartcard")) != NULL; at++) starts++;
    assert_in_range(starts, 1, 5);
    assert_true(tried > starts);
    closed(r);
}

static void plugin__a_run_that_hangs_is_killed_and_holds_up_no_other(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){.processes = 2}, PLUGINS_DIR);
    const int64_t began_ms = rt_mono_ms();
    rig_start(r, 1, "odd", "hang", NULL, 3000);
    for (int i = 0; i < 20; i++) {
        rt_outcome o = rig_run(r, "odd", "describe", NULL);
        rig_assert_answer(&o, "\"action\":\"done\"");
    }
    rig_start(r, 2, "odd", "hang", NULL, 1000); // now all of its processes hang
    rig_start(r, 3, "odd", "describe", NULL, 500);
    rig_start(r, 4, "odd", "describe", NULL, 20000);
    rt_outcome o = rig_run(r, "other", "describe", NULL); // the other plugin has its own
    rig_assert_answer(&o, "\"action\":\"done\"");
    o = rig_wait(r, 3);
    rig_assert_failed(&o, RT_REASON_TIMEOUT, "no turn in time");
    assert_in_range(o.took_ms, 500, 1500);
    o = rig_wait(r, 2);
    rig_assert_failed(&o, RT_REASON_TIMEOUT, "no answer in time");
    assert_in_range(o.took_ms, 1000, 2000);
    o = rig_wait(r, 4); // what was killed is replaced
    rig_assert_answer(&o, "\"action\":\"done\"");
    o = rig_wait(r, 1);
    rig_assert_failed(&o, RT_REASON_TIMEOUT, "no answer in time");
    assert_in_range(rt_mono_ms() - began_ms, 3000, 30000);
    closed(r);
}

static void plugin__more_runs_than_processes_take_turns(void **state) {
    (void)state;
    enum { RUNS = 60 };
    plugin_rig *r = rig_open((rt_plugins_config){.processes = 3}, PLUGINS_DIR);
    for (rt_id id = 1; id <= RUNS; id++) rig_start(r, id, "odd", "slow", "{\"ms\": 5}", 20000);
    for (rt_id id = 1; id <= RUNS; id++) {
        rt_outcome o = rig_wait(r, id);
        rig_assert_answer(&o, "{\"action\":\"done\"}");
    }
    assert_int_equal(r->count, RUNS); // each of them one
    closed(r);
}

static void plugin__what_is_printed_is_logged_within_bounds(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    rt_outcome o = rig_run(r, "odd", "print", NULL);
    rig_assert_answer(&o, "unavailable");
    rig_wait_log(r, "odd: to standard output\n");
    rig_wait_log(r, "odd: to standard error\nodd: and ?[31mred?[0m\n");
    rt_plugins_close(r->plugins);
    r->plugins = NULL;
    rig_wait_log(r, "lines left out)\n");
    assert_null(strstr(r->log, "odd: line 990\n"));
    closed(r);
}

static void plugin__a_stopping_server_tells_and_then_kills(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    rt_outcome o = rig_run(r, "other", "describe", NULL);
    rig_assert_answer(&o, "done");
    rig_start(r, 1, "odd", "until_cancelled", NULL, 20000);
    rig_start(r, 2, "odd", "hang", NULL, 20000);
    rig_wait_log(r, "odd: waiting\n");
    rt_plugins_close(r->plugins);
    r->plugins = NULL;
    rig_wait_log(r, "odd: cancelled\n");
    rig_wait_log(r, "other: shutting down\n");
    assert_int_equal(r->count, 1); // what was under way has no outcome, as after a crash
    closed(r);
}

static void plugin__what_a_plugin_leaves_behind_goes_with_it(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    const rt_outcome o = rig_run(r, "odd", "leave_a_child", NULL);
    rig_assert_failed(&o, RT_REASON_CRASHED, "the plugin's process ");
    rig_wait_log(r, "odd: left ");
    int pid = 0;
    assert_int_equal(sscanf(strstr(r->log, "odd: left "), "odd: left %d", &pid), 1);
    wait_gone(pid);
    closed(r);
}

static void plugin__a_file_that_was_replaced_is_loaded_anew(void **state) {
    (void)state;
    char dir[] = "/tmp/retryd-plugins-XXXXXX", copy[512];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(copy, sizeof copy, "cp %s/odd.so %s/new && mv %s/new %s/odd.so", PLUGINS_DIR, dir, dir,
                   dir);
    assert_int_equal(system(copy), 0);
    plugin_rig *r = rig_open((rt_plugins_config){.processes = 1}, dir);
    unsigned runs;
    const int pid = pid_of(r, "odd", &runs);
    assert_int_equal(system(copy), 0);
    assert_int_not_equal(pid_of(r, "odd", &runs), pid);
    closed(r);
    (void)snprintf(copy, sizeof copy, "rm -r %s", dir);
    assert_int_equal(system(copy), 0);
}

/* A server that is killed takes its plugins with it, also one that hangs. */
static void plugin__nothing_outlives_a_killed_server(void **state) {
    (void)state;
    int told[2];
    assert_int_equal(pipe(told), 0);
    const pid_t server = fork();
    if (server == 0) {
        plugin_rig *r = rig_open((rt_plugins_config){.processes = 1}, PLUGINS_DIR);
        unsigned runs;
        const int pid = pid_of(r, "odd", &runs);
        rig_start(r, 1, "odd", "hang", NULL, 60000);
        (void)!write(told[1], &pid, sizeof pid);
        for (;;) (void)pause();
    }
    int pid = 0;
    assert_int_equal(read(told[0], &pid, sizeof pid), sizeof pid);
    assert_false(is_gone(pid));
    assert_int_equal(kill(server, SIGKILL), 0);
    assert_int_equal(waitpid(server, NULL, 0), server);
    wait_gone(pid);
    (void)close(told[0]);
    (void)close(told[1]);
}

static void plugin__a_host_without_a_server_says_so(void **state) {
    (void)state;
    char *args[] = {(char *)(uintptr_t) "odd", (char *)(uintptr_t)PLUGINS_DIR "/odd.so"};
    assert_int_equal(rt_plugin_host(0, args), 2);
    assert_int_equal(rt_plugin_host(2, args), 2); // descriptor 3 is no socket here
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], RT_PLUGIN_HOST_COMMAND) == 0) return rt_plugin_host(argc - 2, argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            plugin__nothing_outlives_a_killed_server), // first: it forks, and there are no threads yet
        cmocka_unit_test(plugin__runs_are_told_all_and_answer),
        cmocka_unit_test(plugin__processes_are_used_again),
        cmocka_unit_test(plugin__what_goes_wrong_is_an_outcome),
        cmocka_unit_test(plugin__who_talks_without_being_asked_is_killed),
        cmocka_unit_test(plugin__without_a_plugin_there_is_a_reason),
        cmocka_unit_test(plugin__a_broken_plugin_is_not_started_again_and_again),
        cmocka_unit_test(plugin__a_run_that_hangs_is_killed_and_holds_up_no_other),
        cmocka_unit_test(plugin__more_runs_than_processes_take_turns),
        cmocka_unit_test(plugin__what_is_printed_is_logged_within_bounds),
        cmocka_unit_test(plugin__a_stopping_server_tells_and_then_kills),
        cmocka_unit_test(plugin__what_a_plugin_leaves_behind_goes_with_it),
        cmocka_unit_test(plugin__a_file_that_was_replaced_is_loaded_anew),
        cmocka_unit_test(plugin__a_host_without_a_server_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
