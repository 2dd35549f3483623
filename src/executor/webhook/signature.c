#include "executor/webhook/signature.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"

enum {
    KEYS_MAX = 512,        /* a power of two; about 1 KB each */
    SECRET_TEXT_MAX = 512, /* of base64 */
    MAC_BYTES = 32
};

/* A secret and a MAC that has taken it in. */
typedef struct key {
    char *secret; /* NULL: empty place */
    size_t secret_len;
    EVP_MAC_CTX *ctx;
} key;

struct rt_signer {
    EVP_MAC *hmac;
    key keys[KEYS_MAX]; /* by hash; the newer of two on one place stays */
};

rt_code rt_signer_open(rt_signer **out, rt_err *err) {
    rt_signer *s = calloc(1, sizeof *s);
    if (s == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "signer");
    s->hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    if (s->hmac == NULL) {
        free(s);
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "libcrypto offers no HMAC");
    }
    *out = s;
    return RT_OK;
}

static void key_clear(key *k) {
    if (k->secret != NULL) OPENSSL_cleanse(k->secret, k->secret_len);
    free(k->secret);
    EVP_MAC_CTX_free(k->ctx);
    *k = (key){0};
}

void rt_signer_close(rt_signer *signer) {
    if (signer == NULL) return;
    for (size_t i = 0; i < KEYS_MAX; i++) key_clear(&signer->keys[i]);
    EVP_MAC_free(signer->hmac);
    free(signer);
}

/* Returns the number of bytes of the key, 0 when `secret` is not base64. Padding may be left out. */
static size_t secret_decode(rt_str secret, unsigned char out[SECRET_TEXT_MAX]) {
    const rt_str prefix = RT_STR("whsec_");
    if (rt_str_starts(secret, prefix)) {
        secret = (rt_str){.ptr = secret.ptr + prefix.len, .len = secret.len - prefix.len};
    }
    while (secret.len > 0 && secret.ptr[secret.len - 1] == '=') secret.len--;
    if (secret.len == 0 || secret.len % 4 == 1 || secret.len > SECRET_TEXT_MAX - 4) return 0;
    unsigned char text[SECRET_TEXT_MAX];
    memcpy(text, secret.ptr, secret.len);
    const size_t pad = (4 - secret.len % 4) % 4;
    memset(text + secret.len, '=', pad);
    const int bytes = EVP_DecodeBlock(out, text, (int)(secret.len + pad));
    OPENSSL_cleanse(text, sizeof text);
    return bytes <= (int)pad ? 0 : (size_t)bytes - pad;
}

static bool key_set(const rt_signer *s, key *k, rt_str secret) {
    unsigned char raw[SECRET_TEXT_MAX];
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    const size_t raw_len = secret_decode(secret, raw);
    if (raw_len == 0) return false;
    key_clear(k);
    k->secret = rt_str_dup(secret);
    k->secret_len = secret.len;
    k->ctx = EVP_MAC_CTX_new(s->hmac);
    const bool ok = k->secret != NULL && k->ctx != NULL && EVP_MAC_init(k->ctx, raw, raw_len, params) == 1;
    OPENSSL_cleanse(raw, sizeof raw);
    if (!ok) key_clear(k);
    return ok;
}

static bool update(EVP_MAC_CTX *ctx, rt_str part) {
    return EVP_MAC_update(ctx, (const unsigned char *)part.ptr, part.len) == 1;
}

bool rt_signer_add(rt_signer *signer, rt_str secret, rt_str id, rt_str timestamp, rt_str body, rt_buf *out) {
    key *k = &signer->keys[rt_hash_str(secret) % KEYS_MAX];
    const bool known = k->secret != NULL && rt_str_eq_secret((rt_str){k->secret, k->secret_len}, secret);
    // Without a key, init starts over with the one that was taken in before.
    if (known ? EVP_MAC_init(k->ctx, NULL, 0, NULL) != 1 : !key_set(signer, k, secret)) return false;
    unsigned char mac[MAC_BYTES];
    unsigned char text[(MAC_BYTES + 2) / 3 * 4 + 1];
    size_t mac_len = 0;
    if (!update(k->ctx, id) || !update(k->ctx, RT_STR(".")) || !update(k->ctx, timestamp) ||
        !update(k->ctx, RT_STR(".")) || !update(k->ctx, body) ||
        EVP_MAC_final(k->ctx, mac, &mac_len, sizeof mac) != 1 || mac_len != sizeof mac) {
        return false;
    }
    const int text_len = EVP_EncodeBlock(text, mac, sizeof mac);
    rt_buf_add(out, RT_STR("v1,"));
    rt_buf_add(out, (rt_str){.ptr = (const char *)text, .len = (size_t)text_len});
    return true;
}
