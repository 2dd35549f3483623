/* Settings: from defaults, files and --set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config.h"

static int set_up(void **state) {
    rt_config *c = malloc(sizeof *c);
    assert_non_null(c);
    assert_int_equal(rt_config_init(c, NULL), RT_OK);
    *state = c;
    return 0;
}

static int tear_down(void **state) {
    rt_config_deinit(*state);
    free(*state);
    return 0;
}

static void config__defaults_are_those_of_the_documents(void **state) {
    const rt_config *c = *state;
    assert_string_equal(c->server_listen, "127.0.0.1:8888");
    assert_int_equal(c->server_connections_max, 4096);
    assert_int_equal(c->server_body_bytes_max, 1048576);
    assert_int_equal(c->store_lmdb_map_bytes, UINT64_C(1099511627776));
    assert_int_equal(c->store_disk_reserve_bytes, 67108864);
    assert_int_equal(c->history_maximum_age_seconds, 604800);
    assert_int_equal(c->history_maximum_events, 1000000);
    assert_int_equal(c->delivery_in_flight_max, 4096);
    assert_int_equal(c->delivery_queue_in_flight_max, 64);
    assert_int_equal(c->delivery_connect_timeout_ms, 10000);
    assert_string_equal(c->delivery_allow_networks, "");
    assert_false(c->notification_require_confirmation);
    rt_address_list none;
    assert_int_equal(rt_config_networks(c, &none, NULL), RT_OK);
    assert_int_equal(none.count, 0);
}

static void config__assignments_that_are_taken(void **state) {
    rt_config *c = *state;
    const struct {
        const char *assignment;
        const uint64_t *number;
        uint64_t want;
    } rows[] = {
        {"server.readers=1", &c->server_readers, 1},
        {"server.readers=64", &c->server_readers, 64},
        {" server.readers = 7 ", &c->server_readers, 7},
        {"server.body_bytes_max=1024", &c->server_body_bytes_max, 1024},
        {"server.body_bytes_max=2k", &c->server_body_bytes_max, 2048},
        {"server.body_bytes_max=64M", &c->server_body_bytes_max, 67108864},
        {"store.lmdb_map_bytes=3G", &c->store_lmdb_map_bytes, UINT64_C(3221225472)},
        {"store.lmdb_map_bytes=64T", &c->store_lmdb_map_bytes, UINT64_C(70368744177664)},
        {"store.disk_reserve_bytes=0", &c->store_disk_reserve_bytes, 0},
        {"delivery.drain_ms=0", &c->delivery_drain_ms, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_err err;
        if (rt_config_assign(c, rows[i].assignment, &err) != RT_OK) fail_msg("%s", err.msg);
        if (*rows[i].number != rows[i].want) fail_msg("%s", rows[i].assignment);
    }
    assert_int_equal(rt_config_assign(c, "notification.require_confirmation=Yes", NULL), RT_OK);
    assert_true(c->notification_require_confirmation);
    assert_int_equal(rt_config_assign(c, "notification.require_confirmation=0", NULL), RT_OK);
    assert_false(c->notification_require_confirmation);
    assert_int_equal(rt_config_assign(c, "log.format=json", NULL), RT_OK);
    assert_string_equal(c->log_format, "json");
    assert_int_equal(rt_config_assign(c, "mail.relay=smtps://mail.example:465", NULL), RT_OK);
    assert_int_equal(rt_config_assign(c, "mail.relay=", NULL), RT_OK);
    assert_string_equal(c->mail_relay, "");
    assert_int_equal(rt_config_assign(c, "transport.subscriber_types=https, mailto", NULL), RT_OK);
    assert_int_equal(rt_config_assign(c, "auth.tokens_file=/a=b", NULL), RT_OK);
    assert_string_equal(c->auth_tokens_file, "/a=b");
}

static void config__assignments_that_are_refused_say_why(void **state) {
    const struct {
        const char *assignment, *words;
    } rows[] = {
        {"server.readers=0", "server.readers must be 1 to 64 threads, not \"0\""},
        {"server.readers=65", "server.readers must be 1 to 64 threads"},
        {"server.readers=-1", "server.readers must be"},
        {"server.readers=1k", "server.readers must be"},
        {"server.readers=", "not \"\""},
        {"server.readers=1 2", "server.readers must be"},
        {"server.body_bytes_max=1023", "server.body_bytes_max must be 1024 to 67108864 bytes"},
        {"server.body_bytes_max=65M", "server.body_bytes_max must be"},
        {"server.body_bytes_max=k", "server.body_bytes_max must be"},
        {"server.body_bytes_max=1kk", "server.body_bytes_max must be"},
        {"store.lmdb_map_bytes=99999999999T", "store.lmdb_map_bytes must be"},
        {"notification.require_confirmation=maybe", "must be true|false, not \"maybe\""},
        {"log.level=loud", "log.level must be debug|info|warn|error"},
        {"log.level=debug|info", "log.level must be"},
        {"server.listen=here", "server.listen must be HOST:PORT, not \"here\""},
        {"delivery.allow_networks=10.0.0.0/33", "delivery.allow_networks"},
        {"delivery.allow_networks=loopback,nonsense", "nonsense"},
        {"server.reader=1", "no setting \"server.reader\"; did you mean server.readers?"},
        {"delivery.queue_inflight_max=1", "did you mean delivery.queue_in_flight_max?"},
        {"max_age=1", "no setting \"max_age\"; `retryd config --explain` lists them all"},
        {"delivry.allow_networks=1", "did you mean delivery.allow_networks?"},
        {"mail.relay=localhost:25", "mail.relay must be smtp://HOST:PORT|smtps://HOST:PORT, not \"localhost:25\""},
        {"mail.relay=smtp://", "mail.relay must be"},
        {"orders.host_href=keys.example", "orders.host_href must be http://HOST|https://HOST"},
        {"transport.subscriber_types=https,ftp", "http|https|mailto|trust+http|trust+https, not \"https,ftp\""},
        {"server.readers", "not of the form group.key=value"},
        {"plugin.Hello.a=1", "\"plugin.Hello.a\" is not of the form plugin.NAME.key"},
        {"plugin.hello.=1", "not of the form plugin.NAME.key"},
        {"plugin.hello=1", "there is no setting \"plugin.hello\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_err err;
        assert_int_equal(rt_config_assign(*state, rows[i].assignment, &err), RT_E_INVALID);
        if (strstr(err.msg, rows[i].words) == NULL) fail_msg("%s: %s", rows[i].assignment, err.msg);
    }
}

static void config__networks_know_words(void **state) {
    rt_config *c = *state;
    assert_int_equal(rt_config_assign(c, "delivery.allow_networks=loopback, 192.0.2.0/24 private", NULL),
                     RT_OK);
    assert_string_equal(c->delivery_allow_networks, "loopback,192.0.2.0/24,private");
    rt_address_list list;
    assert_int_equal(rt_config_networks(c, &list, NULL), RT_OK);
    const struct {
        const char *host;
        bool refused;
    } rows[] = {{"127.0.0.1", false}, {"127.255.0.1", false}, {"::1", false},     {"10.1.2.3", false},
                {"172.16.0.1", false}, {"172.32.0.1", false}, {"192.168.9.9", false}, {"fd00::1", false},
                {"192.0.2.7", false}, {"198.51.100.1", true}, {"169.254.169.254", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bool refused = rt_address_literal_refused(&list, rt_str_of(rows[i].host));
        if (refused != rows[i].refused) fail_msg("%s", rows[i].host);
    }
}

static void config__reads_ini(void **state) {
    rt_config *c = *state;
    const rt_str text = RT_STR("# a comment\n"
                               "\n"
                               "[server]\n"
                               "listen = [::1]:80\r\n"
                               "readers=3 ; three\n"
                               "; another\n"
                               "[delivery]\n"
                               "allow_networks = loopback,\n"
                               "  10.0.0.0/8\n"
                               "\tprivate\n"
                               "[log]\n"
                               "level = warn");
    rt_err err;
    if (rt_config_parse(c, text, "a.conf", &err) != RT_OK) fail_msg("%s", err.msg);
    assert_string_equal(c->server_listen, "[::1]:80");
    assert_int_equal(c->server_readers, 3);
    assert_string_equal(c->delivery_allow_networks, "loopback,10.0.0.0/8,private");
    assert_string_equal(c->log_level, "warn");
}

/* What retryd does not know goes to the plugin that it is for, as it stands there. */
static void config__sections_of_plugins_are_kept(void **state) {
    rt_config *c = *state;
    rt_err err;
    rt_plugin_setting got[RT_CONFIG_PLUGIN_MAX];
    assert_int_equal(rt_config_plugin_list(&c->plugin, got), 0);
    const rt_str text = RT_STR("[plugin.hello]\ngreeting = Good morning\nempty =\n[log]\nlevel = warn\n"
                               "[plugin.a-b_1]\nx.y = z");
    if (rt_config_parse(c, text, "a.conf", &err) != RT_OK) fail_msg("%s", err.msg);
    assert_int_equal(rt_config_assign(c, "plugin.hello.greeting=Hi", NULL), RT_OK);
    static const char *const want[][3] = {{"hello", "greeting", "Good morning"},
                                          {"hello", "empty", ""},
                                          {"a-b_1", "x.y", "z"},
                                          {"hello", "greeting", "Hi"}};
    assert_int_equal(rt_config_plugin_list(&c->plugin, got), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(got[i].plugin.ptr, want[i][0]);
        assert_string_equal(got[i].key.ptr, want[i][1]);
        assert_string_equal(got[i].value.ptr, want[i][2]);
    }
    const rt_str list = RT_STR("[plugin.hello]\ngreeting = one\n  two\n");
    assert_int_equal(rt_config_parse(c, list, "b.conf", &err), RT_E_INVALID);
    assert_non_null(strstr(err.msg, "goes on with a list, but plugin.hello.greeting is none"));
    for (size_t i = rt_config_plugin_list(&c->plugin, got); i < RT_CONFIG_PLUGIN_MAX; i++) {
        assert_int_equal(rt_config_assign(c, "plugin.hello.n=1", NULL), RT_OK);
    }
    assert_int_equal(rt_config_assign(c, "plugin.hello.n=1", NULL), RT_E_INVALID);
}

static void config__wrong_lines_are_named(void **state) {
    char longer[400] = "[auth]\ntokens_file = ";
    memset(longer + strlen(longer), 'x', 300);
    const struct {
        const char *text, *words;
    } rows[] = {
        {"[server]\nreaders = 3\nreaderz = 4\n",
         "a.conf:3: there is no setting \"server.readerz\"; did you mean"},
        {"\n\n[server]\nreaders = 0\n[log]\nlevel = 1\n", "a.conf:4: server.readers must be 1 to 64"},
        {"[server]\nreaders\n", "a.conf:2: neither [group] nor key = value"},
        {"[server\nreaders=1\n", "a.conf:1:"},
        {"readers = 3\n", "a.conf:1: there is no setting \".readers\""},
        {"[server]\nreaders = 3\n  4\n", "a.conf:3: a line that begins with a space"},
        {longer, "a.conf:2: the line is longer than 198 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_err err;
        assert_int_equal(rt_config_parse(*state, rt_str_of(rows[i].text), "a.conf", &err), RT_E_INVALID);
        if (strstr(err.msg, rows[i].words) != err.msg) fail_msg("row %zu: %s", i, err.msg);
    }
    rt_err err;
    assert_int_equal(rt_config_parse(*state, RT_STR("[log]\nlevel=de\0bug\n"), "a.conf", &err), RT_E_INVALID);
    assert_string_equal(err.msg, "a.conf:2: there is a NUL in it");
    assert_int_equal(rt_config_read(*state, "/nowhere/a.conf", &err), RT_E_IO);
    assert_non_null(strstr(err.msg, "/nowhere/a.conf"));
}

static void config__explains_all_in_a_form_that_it_reads(void **state) {
    rt_buf text = {0}, set = {0};
    rt_config_explain(&text);
    assert_false(text.failed);
    assert_non_null(strstr(text.ptr, "[server]\n"));
    assert_non_null(strstr(text.ptr, "# seconds, 1 to 315360000\n#maximum_age_seconds = 604800\n"));
    assert_non_null(strstr(text.ptr, "#level = info\n"));
    rt_err err;
    if (rt_config_parse(*state, rt_buf_str(&text), "explained", &err) != RT_OK) fail_msg("%s", err.msg);
    // With the '#' before each "key = default" taken away, all that is said there can be said back.
    for (const char *p = text.ptr; *p != '\0'; p++) {
        const bool begins = p == text.ptr || p[-1] == '\n';
        if (!(begins && p[0] == '#' && p[1] != ' ')) rt_buf_add_char(&set, *p);
    }
    if (rt_config_parse(*state, rt_buf_str(&set), "explained", &err) != RT_OK) fail_msg("%s", err.msg);
    rt_buf_deinit(&text);
    rt_buf_deinit(&set);
}

static void config__splits_listen_addresses(void **state) {
    (void)state;
    const struct {
        const char *listen, *host; /* NULL: refused */
        uint16_t port;
    } rows[] = {
        {"127.0.0.1:8888", "127.0.0.1", 8888}, {"localhost:0", "localhost", 0}, {"[::1]:65535", "::1", 65535},
        {":80", "", 80},                       {"*:80", "", 80},                {"::1:80", NULL, 0},
        {"host", NULL, 0},                     {"host:", NULL, 0},              {"host:65536", NULL, 0},
        {"host:-1", NULL, 0},                  {"host:+1", NULL, 0},            {"host:1x", NULL, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char host[RT_HOST_MAX];
        uint16_t port;
        const bool ok = rt_config_split_listen(rows[i].listen, host, &port);
        if (ok != (rows[i].host != NULL)) fail_msg("%s", rows[i].listen);
        if (!ok) continue;
        assert_string_equal(host, rows[i].host);
        assert_int_equal(port, rows[i].port);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(config__defaults_are_those_of_the_documents),
        TEST(config__assignments_that_are_taken),
        TEST(config__assignments_that_are_refused_say_why),
        TEST(config__networks_know_words),
        TEST(config__reads_ini),
        TEST(config__sections_of_plugins_are_kept),
        TEST(config__wrong_lines_are_named),
        TEST(config__explains_all_in_a_form_that_it_reads),
        cmocka_unit_test(config__splits_listen_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
