#include "face/notifications/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "base/hex.h"

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
