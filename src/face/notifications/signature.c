#include "face/notifications/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "base/hex.h"

/* ---- making -------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) { return rt_str_cmp(*(const rt_str *)a, *(const rt_str *)b); }

static void add_list(rt_buf *text, rt_str *list, size_t count) {
    qsort(list, count, sizeof *list, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) rt_buf_add_char(text, ',');
        rt_buf_add(text, list[i]);
    }
    // A backslash and an n: Zaqar joins with a raw string, and its clients rely on it.
    rt_buf_add(text, RT_STR("\\n"));
}

rt_code rt_signature_make(rt_str key, rt_signed_url *url, rt_signature *out) {
    rt_buf text = {0};
    add_list(&text, url->paths, url->paths_count);
    add_list(&text, url->methods, url->methods_count);
    rt_buf_add(&text, url->project);
    rt_buf_add(&text, RT_STR("\\n"));
    rt_buf_add(&text, rt_str_of(url->expires.s));

    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const unsigned char *made = text.failed ? NULL : HMAC(EVP_sha256(), key.ptr, (int)key.len,
                                                          (const unsigned char *)text.ptr, text.len, digest, &len);
    rt_buf_deinit(&text);
    if (made == NULL) return RT_E_NOMEM;
    RT_ASSERT(len * 2 == RT_SIGNATURE_LEN);
    rt_hex_write(out->s, digest, len);
    out->s[RT_SIGNATURE_LEN] = '\0';
    return RT_OK;
}

/* ---- use ----------------------------------------------------------------------------------------------- */

/* Cuts "a,b" into out[]. False: too many. */
static bool split(rt_str text, rt_str out[RT_SIGNED_LIST_MAX], size_t *count) {
    bool more = true;
    *count = 0;
    while (more) {
        if (*count == RT_SIGNED_LIST_MAX) return false;
        more = rt_str_cut(text, ',', &out[*count], &text);
        (*count)++;
    }
    return true;
}

/* The path itself or one below it. */
static bool covers(rt_str signed_path, rt_str path) {
    if (signed_path.len == 0 || !rt_str_starts(path, signed_path)) return false;
    return path.len == signed_path.len || path.ptr[signed_path.len] == '/';
}

static bool is_for_this(const rt_exchange *x, const rt_signed_url *url) {
    bool method = false, path = false;
    for (size_t i = 0; i < url->methods_count; i++) {
        method = method || rt_str_eq(url->methods[i], rt_exchange_method(x));
    }
    for (size_t i = 0; i < url->paths_count; i++) path = path || covers(url->paths[i], rt_exchange_path(x));
    return method && path;
}

bool rt_signature_admits(const rt_exchange *x) {
    const rt_api *api = rt_api_of(x);
    rt_str signature, expires, methods, paths;
    rt_signed_url url;
    int64_t expires_s;
    if (!rt_exchange_header(x, "URL-Signature", &signature) || !rt_exchange_header(x, "URL-Expires", &expires) ||
        !rt_exchange_header(x, "URL-Methods", &methods) || !rt_exchange_header(x, "URL-Paths", &paths) ||
        !rt_exchange_header(x, "X-Project-ID", &url.project)) {
        return false;
    }
    if (!split(methods, url.methods, &url.methods_count) || !split(paths, url.paths, &url.paths_count) ||
        !is_for_this(x, &url) || !rt_timestamp_parse(expires, &expires_s) || expires_s <= api->now_ms() / 1000) {
        return false;
    }
    url.expires = rt_timestamp_format(expires_s);
    rt_signature made;
    if (rt_signature_make(api->signing_key, &url, &made) != RT_OK) return false;
    return rt_str_eq_secret(signature, rt_str_of(made.s));
}
