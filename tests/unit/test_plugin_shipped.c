/* The plugins that come with retryd, and the example that is built as its page says. */
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "plugin_rig.h"

/* The whole answer of a run; for json_decref. */
static json_t *answer_of(plugin_rig *r, const char *name, const char *task, const char *meta) {
    rt_outcome o = rig_run(r, name, task, meta);
    if (o.answer == NULL) fail_msg("%s: %.*s", rt_reason_name(o.reason), o.text_len, o.text);
    json_t *json = json_loads(o.answer, 0, NULL);
    assert_non_null(json);
    free(o.answer);
    return json;
}

static const char *text_at(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text != NULL ? text : "(none)";
}

static size_t payload_of(const json_t *secret, unsigned char out[8192]) {
    const char *text = text_at(secret, "payload_base64");
    size_t len = strlen(text);
    assert_in_range(len, 4, 8000);
    const int bytes = EVP_DecodeBlock(out, (const unsigned char *)text, (int)len);
    assert_true(bytes > 0);
    const size_t padding = (size_t)(text[len - 1] == '=') + (text[len - 2] == '=');
    return (size_t)bytes - padding;
}

static void simple_certificate__waits_and_then_it_is_there(void **state) {
    (void)state;
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    json_t *a = answer_of(r, "simple_certificate", "create_order", NULL);
    assert_string_equal(text_at(a, "action"), "retry");
    assert_int_equal(json_integer_value(json_object_get(a, "after_ms")), 5000);
    assert_string_equal(text_at(a, "task"), "check_certificate_status");
    assert_string_equal(text_at(a, "sub_status"), "cert_request_pending");
    json_decref(a);
    a = answer_of(r, "simple_certificate", "check_certificate_status", NULL);
    assert_string_equal(text_at(a, "action"), "done");
    assert_string_equal(text_at(a, "sub_status"), "cert_generated");
    assert_non_null(
        json_object_get(json_object_get(json_object_get(a, "container"), "secrets"), "certificate"));
    json_decref(a);
    a = answer_of(r, "simple_certificate", "something_else", NULL);
    assert_string_equal(text_at(a, "action"), "failed");
    json_decref(a);
    rig_close(r);
}

static void simple_certificate__takes_its_delay_from_the_settings(void **state) {
    (void)state;
    static const struct {
        rt_str value;
        int64_t after_ms; /* -1: refused */
    } rows[] = {
        {{"0", 1}, 0},
        {{"1", 1}, 1000},
        {{"2592000", 7}, 2592000000},
        {{"2592001", 7}, -1},
        {{"-1", 2}, -1},
        {{"", 0}, -1},
        {{"5s", 2}, -1},
        {{"99999999999999999999", 20}, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rt_plugin_setting setting = {RT_STR("simple_certificate"),
                                           RT_STR("delay_before_update_seconds"), rows[i].value};
        plugin_rig *r = rig_open((rt_plugins_config){.settings = &setting, .settings_count = 1}, PLUGINS_DIR);
        if (rows[i].after_ms < 0) {
            const rt_outcome o = rig_run(r, "simple_certificate", "create_order", NULL);
            rig_assert_failed(&o, RT_REASON_NO_PLUGIN,
                              "delay_before_update_seconds is a whole number of seconds");
        } else {
            json_t *a = answer_of(r, "simple_certificate", "create_order", NULL);
            assert_int_equal(json_integer_value(json_object_get(a, "after_ms")), rows[i].after_ms);
            json_decref(a);
        }
        rig_close(r);
    }
}

static void key__makes_random_bytes(void **state) {
    (void)state;
    static const struct {
        const char *meta;
        size_t bytes; /* 0: refused */
    } rows[] = {
        {"{\"algorithm\":\"aes\",\"bit_length\":256,\"mode\":\"cbc\",\"name\":\"k\"}", 32},
        {"{\"algorithm\":\"AES\",\"bit_length\":128,\"payload_content_type\":\"application/octet-stream\"}",
         16},
        {"{\"algorithm\":\"hmacsha256\",\"bit_length\":4096}", 512},
        {"{\"algorithm\":\"hmacsha1\",\"bit_length\":8}", 1},
        {"{\"algorithm\":\"desede\",\"bit_length\":192}", 24},
        {"{\"algorithm\":\"aes\",\"bit_length\":264}", 0},
        {"{\"algorithm\":\"aes\",\"bit_length\":129}", 0},
        {"{\"algorithm\":\"hmacsha1\",\"bit_length\":4104}", 0},
        {"{\"algorithm\":\"hmacsha1\",\"bit_length\":0}", 0},
        {"{\"algorithm\":\"hmacsha1\",\"bit_length\":-8}", 0},
        {"{\"algorithm\":\"hmacsha1\",\"bit_length\":\"256\"}", 0},
        {"{\"algorithm\":\"rot13\",\"bit_length\":256}", 0},
        {"{\"algorithm\":7,\"bit_length\":256}", 0},
        {"{\"algorithm\":\"aes\",\"bit_length\":256,\"payload_content_type\":\"text/plain\"}", 0},
        {"{}", 0},
    };
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char one[8192], two[8192];
        json_t *a = answer_of(r, "key", "create_order", rows[i].meta);
        json_t *again = answer_of(r, "key", "create_order", rows[i].meta);
        assert_string_equal(text_at(a, "action"), rows[i].bytes > 0 ? "done" : "failed");
        if (rows[i].bytes > 0) {
            assert_string_equal(text_at(json_object_get(a, "secret"), "content_type"),
                                "application/octet-stream");
            assert_int_equal(payload_of(json_object_get(a, "secret"), one), rows[i].bytes);
            assert_int_equal(payload_of(json_object_get(again, "secret"), two), rows[i].bytes);
            if (rows[i].bytes >= 16) assert_memory_not_equal(one, two, rows[i].bytes);
        } else {
            assert_string_equal(text_at(a, "code"), "400");
            assert_memory_equal(text_at(a, "reason"), "meta.", 5);
            assert_null(json_object_get(a, "secret"));
        }
        json_decref(a);
        json_decref(again);
    }
    rig_close(r);
}

/* Both halves are read back, and are of one pair. */
static void assert_pair(const json_t *answer, bool der, const char *passphrase, int bits) {
    const json_t *members = json_object_get(json_object_get(answer, "container"), "secrets");
    unsigned char secret[8192], open[8192];
    const int secret_len = (int)payload_of(json_object_get(members, "private_key"), secret);
    const int open_len = (int)payload_of(json_object_get(members, "public_key"), open);
    BIO *in = BIO_new_mem_buf(secret, secret_len), *in_open = BIO_new_mem_buf(open, open_len);
    void *word = (void *)(uintptr_t)passphrase;
    EVP_PKEY *pair = NULL;
    if (der && passphrase != NULL) pair = d2i_PKCS8PrivateKey_bio(in, NULL, NULL, word);
    else pair = der ? d2i_PrivateKey_bio(in, NULL) : PEM_read_bio_PrivateKey(in, NULL, NULL, word);
    EVP_PKEY *half = der ? d2i_PUBKEY_bio(in_open, NULL) : PEM_read_bio_PUBKEY(in_open, NULL, NULL, NULL);
    assert_non_null(pair);
    assert_non_null(half);
    assert_int_equal(EVP_PKEY_eq(pair, half), 1);
    if (bits > 0) assert_int_equal(EVP_PKEY_get_bits(pair), bits);
    EVP_PKEY_free(pair);
    EVP_PKEY_free(half);
    BIO_free(in);
    BIO_free(in_open);
}

static void asymmetric__makes_pairs(void **state) {
    (void)state;
    static const struct {
        const char *meta, *passphrase;
        bool der;
        int bits;
    } rows[] = {
        {"{\"algorithm\":\"rsa\",\"bit_length\":2048,\"name\":\"pair\"}", NULL, false, 2048},
        {"{\"algorithm\":\"RSA\",\"payload_content_type\":\"application/octet-stream\"}", NULL, true, 2048},
        {"{\"algorithm\":\"ec\",\"bit_length\":384,\"pass_phrase\":\"s3same\"}", "s3same", false, 384},
        {"{\"algorithm\":\"ec\",\"bit_length\":256,\"passphrase\":\"x\",\"payload_content_type\":"
         "\"application/octet-stream\"}",
         "x", true, 256},
        {"{\"algorithm\":\"ed25519\"}", NULL, false, 0},
    };
    static const char *const refused[] = {
        "{\"algorithm\":\"rsa\",\"bit_length\":1024}",  "{\"algorithm\":\"rsa\",\"bit_length\":2049}",
        "{\"algorithm\":\"rsa\",\"bit_length\":16384}", "{\"algorithm\":\"ec\",\"bit_length\":257}",
        "{\"algorithm\":\"dsa\",\"bit_length\":2048}",  "{}",
    };
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *a = answer_of(r, "asymmetric", "create_order", rows[i].meta);
        assert_string_equal(text_at(a, "action"), "done");
        assert_pair(a, rows[i].der, rows[i].passphrase, rows[i].bits);
        json_decref(a);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        json_t *a = answer_of(r, "asymmetric", "create_order", refused[i]);
        assert_string_equal(text_at(a, "action"), "failed");
        assert_string_equal(text_at(a, "code"), "400");
        assert_null(json_object_get(a, "container"));
        json_decref(a);
    }
    rig_close(r);
}

static void validate__answers_before_an_order_is_taken(void **state) {
    (void)state;
    static const struct {
        const char *plugin, *meta, *error;
    } rows[] = {
        {"key", "{\"algorithm\":\"aes\",\"bit_length\":256}", "{\"error\":null}"},
        {"key", "{\"bit_length\":256}", "{\"error\":\"meta.algorithm is missing\"}"},
        {"asymmetric", "{\"algorithm\":\"rsa\"}", "{\"error\":null}"},
        {"simple_certificate", "{}", "{\"error\":null}"}, // it has no say
    };
    plugin_rig *r = rig_open((rt_plugins_config){0}, PLUGINS_DIR);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char body[512];
        (void)snprintf(body, sizeof body, "{\"verb\":\"validate\",\"order\":\"\",\"type\":\"t\",\"meta\":%s}",
                       rows[i].meta);
        rig_start_body(r, i + 1, rows[i].plugin, body, 20000);
        rt_outcome o = rig_wait(r, i + 1);
        rig_assert_answer(&o, rows[i].error);
    }
    rig_start_body(r, 100, "simple_certificate", "{\"verb\":\"cancel\",\"order\":\"01\",\"type\":\"t\"}",
                   20000);
    rt_outcome o = rig_wait(r, 100);
    rig_assert_answer(&o, "\"action\":\"done\"");
    rig_wait_log(r, "simple_certificate: a request was withdrawn\n");
    rig_start_body(r, 101, "key", "{\"verb\":\"cancel\",\"order\":\"01\",\"type\":\"t\"}", 20000);
    o = rig_wait(r, 101); // nobody to tell
    rig_assert_answer(&o, "{\"action\":\"done\"}");
    rig_close(r);
}

static void example__builds_with_one_command_and_runs(void **state) {
    (void)state;
    char dir[] = "/tmp/retryd-hello-XXXXXX", command[1024];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(command, sizeof command,
                   "cc -shared -fPIC -I%s/include -o %s/hello.so %s/examples/plugin/hello.c", SOURCE_DIR, dir,
                   SOURCE_DIR);
    assert_int_equal(system(command), 0);
    const rt_plugin_setting setting = {RT_STR("hello"), RT_STR("greeting"), RT_STR("Good morning")};
    plugin_rig *r = rig_open((rt_plugins_config){.settings = &setting, .settings_count = 1}, dir);
    rt_outcome o = rig_run(r, "hello", "create_order", "{\"who\":\"world\"}");
    rig_assert_answer(&o, "\"state\":\"Good morning, world!\"");
    rig_start_body(r, 1, "hello",
                   "{\"task\":\"finish\",\"meta\":{\"who\":\"moon\"},\"state\":\"Hello, moon!\"}", 20000);
    o = rig_wait(r, 1);
    rig_assert_answer(&o, "\"payload_base64\":\"SGVsbG8sIG1vb24h\"");
    rig_close(r);
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], RT_PLUGIN_HOST_COMMAND) == 0) return rt_plugin_host(argc - 2, argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simple_certificate__waits_and_then_it_is_there),
        cmocka_unit_test(simple_certificate__takes_its_delay_from_the_settings),
        cmocka_unit_test(key__makes_random_bytes),
        cmocka_unit_test(asymmetric__makes_pairs),
        cmocka_unit_test(validate__answers_before_an_order_is_taken),
        cmocka_unit_test(example__builds_with_one_command_and_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
