#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "face/notifications/signature.h"

/* Stores the key unless there is one. */
typedef struct key_store {
    rt_command cmd;
    rt_str key;
} key_store;

static rt_str setting_name(void) { return RT_STR("signing_key"); }

static rt_code decide(rt_tx *tx, rt_command *cmd) {
    const key_store *c = (const key_store *)cmd;
    rt_doc doc;
    const rt_code code = rt_view_doc(tx->view, RT_DOC_SETTING, setting_name(), &doc);
    if (code == RT_OK) return RT_E_EXISTS;
    if (code != RT_E_ABSENT) return code;
    doc = (rt_doc){.kind = RT_DOC_SETTING, .name = setting_name(), .value = c->key};
    rt_tx_put_doc(tx, NULL, &doc);
    return RT_OK;
}

static rt_code read_key(const rt_api *api, char out[RT_SIGNING_KEY_LEN + 1], rt_err *err) {
    rt_view *view;
    rt_code code = rt_engine_view(api->engine, &view, err);
    if (code != RT_OK) return code;
    rt_doc doc;
    code = rt_view_doc(view, RT_DOC_SETTING, setting_name(), &doc);
    if (code == RT_OK && doc.value.len != RT_SIGNING_KEY_LEN) {
        code = rt_fail(err, RT_E_CORRUPT, 0, "the stored signing key has a wrong length");
    }
    if (code == RT_OK) memcpy(out, doc.value.ptr, RT_SIGNING_KEY_LEN);
    rt_view_close(view);
    return code;
}

static rt_code make_key(char out[RT_SIGNING_KEY_LEN + 1], rt_err *err) {
    unsigned char random[RT_SIGNING_KEY_LEN / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return rt_fail(err, RT_E_IO, errno, "getrandom");
    rt_hex_write(out, random, sizeof random);
    return RT_OK;
}

static rt_code store_key(const rt_api *api, rt_str key, rt_err *err) {
    key_store c = {.cmd = {.decide = decide}, .key = key};
    return rt_api_do(api, &c.cmd, key.len, err);
}

rt_code rt_signing_key_load(const rt_api *api, char out[RT_SIGNING_KEY_LEN + 1], rt_err *err) {
    memset(out, 0, RT_SIGNING_KEY_LEN + 1);
    rt_code code = read_key(api, out, err);
    if (code != RT_E_ABSENT) return code;
    code = make_key(out, err);
    if (code == RT_OK) code = store_key(api, (rt_str){.ptr = out, .len = RT_SIGNING_KEY_LEN}, err);
    // Another node that shares the store was first.
    if (code == RT_E_EXISTS || code == RT_E_CONFLICT) code = read_key(api, out, err);
    return code;
}
