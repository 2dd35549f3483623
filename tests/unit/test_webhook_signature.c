#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "executor/webhook/signature.h"

static const char SECRET[] = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

static rt_signer *opened(void) {
    rt_signer *s = NULL;
    rt_err err;
    assert_int_equal(rt_signer_open(&s, &err), RT_OK);
    return s;
}

/* Signs the published example's message with `secret`; "" when it is refused. */
static void sign(rt_signer *s, const char *secret, char out[80]) {
    rt_buf b = {0};
    const bool ok = rt_signer_add(s, rt_str_of(secret), RT_STR("msg_p5jXN8AQM9LWM0D4loKWxJek"), RT_STR("1614265330"),
                                  RT_STR("{\"test\": 2432232314}"), &b);
    (void)snprintf(out, 80, "%.*s", ok ? (int)b.len : 0, ok ? b.ptr : "");
    if (!ok) assert_int_equal(b.len, 0);
    rt_buf_deinit(&b);
}

/* The example of the Standard Webhooks specification. */
static void signature__equals_the_published_example(void **state) {
    (void)state;
    rt_signer *s = opened();
    char got[80];
    for (int i = 0; i < 3; i++) { // the first sets the key up, the others use it again
        sign(s, SECRET, got);
        assert_string_equal(got, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
    rt_signer_close(s);
}

static void signature__prefix_and_padding_are_optional(void **state) {
    (void)state;
    rt_signer *s = opened();
    char want[80], got[80];
    sign(s, "whsec_c2VjcmV0IQ==", want); // "secret!"
    assert_int_equal(strlen(want), 47);
    static const char *const same[] = {"whsec_c2VjcmV0IQ", "c2VjcmV0IQ==", "c2VjcmV0IQ"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        sign(s, same[i], got);
        assert_string_equal(got, want);
    }
    sign(s, "whsec_c2VjcmV0IA==", got); // "secret "
    assert_string_not_equal(got, want);
    rt_signer_close(s);
}

static void signature__what_is_no_base64_is_refused(void **state) {
    (void)state;
    rt_signer *s = opened();
    char got[80], longest[700] = "whsec_";
    static const char *const bad[] = {"", "whsec_", "whsec_=", "whsec_a", "whsec_ab!d", "whsec_\xc3\xa9\xc3\xa9", "===="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        sign(s, bad[i], got);
        if (got[0] != '\0') fail_msg("\"%s\" signs", bad[i]);
    }
    memset(longest + 6, 'A', 600);
    sign(s, longest, got);
    assert_string_equal(got, "");
    // And a good one still works.
    sign(s, SECRET, got);
    assert_string_equal(got, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    rt_signer_close(s);
}

/* More keys than are kept ready, twice over: each still gives its own signature. */
static void signature__keys_do_not_mix(void **state) {
    (void)state;
    enum { KEYS = 2000 };
    static char first[KEYS][80];
    rt_signer *s = opened();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEYS; i++) {
            char secret[32], got[80];
            (void)snprintf(secret, sizeof secret, "whsec_%08d", i);
            sign(s, secret, got);
            if (round == 0) memcpy(first[i], got, sizeof got);
            else assert_string_equal(got, first[i]);
            if (round == 0 && i > 0) assert_string_not_equal(got, first[i - 1]);
        }
    }
    rt_signer_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signature__equals_the_published_example),
        cmocka_unit_test(signature__prefix_and_padding_are_optional),
        cmocka_unit_test(signature__what_is_no_base64_is_refused),
        cmocka_unit_test(signature__keys_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
