/* asymmetric: orders of key pairs, made by OpenSSL: a container with private_key (PKCS #8) and public_key
 * (SubjectPublicKeyInfo).
 *
 * meta: "algorithm" ("rsa", "ec", "ed25519", "ed448", "x25519", "x448"), "bit_length" (rsa: 2048 to 8192; ec:
 * 256, 384 or 521), "name", "pass_phrase" or "passphrase" (the private key is encrypted with it, and it is kept
 * as private_key_passphrase), "payload_content_type" ("application/octet-stream" for DER, otherwise PEM). */
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <retryd/plugin.h>
#include <string.h>
#include <strings.h>

enum { RSA_BITS_MIN = 2048, RSA_BITS_MAX = 8192 };

typedef struct wish {
    const char *kind;  /* as OpenSSL calls it */
    const char *curve; /* of "EC" */
    size_t bits;       /* of "RSA" */
    const char *passphrase;
    bool der;
} wish;

static const char *want_rsa(int64_t bits, bool given, wish *w) {
    w->kind = "RSA";
    w->bits = given ? (size_t)bits : RSA_BITS_MIN;
    if (!given) return NULL;
    return bits % 8 == 0 && bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX
               ? NULL
               : "meta.bit_length of rsa is a multiple of 8 from 2048 to 8192";
}

static const char *want_ec(int64_t bits, bool given, wish *w) {
    w->kind = "EC";
    w->curve = !given || bits == 256 ? "P-256" : bits == 384 ? "P-384" : bits == 521 ? "P-521" : NULL;
    return w->curve != NULL ? NULL : "meta.bit_length of ec is 256, 384 or 521";
}

/* Why the order cannot be, in words; NULL: it can, and *w says what is wanted. */
static const char *look(const struct retryd_ctx *ctx, const struct retryd_order *order, wish *w) {
    static const char *const BY_NAME[] = {"ED25519", "ED448", "X25519", "X448"};
    const char *algorithm = retryd_text(ctx, order->meta, "algorithm");
    const char *type = retryd_text(ctx, order->meta, "payload_content_type");
    int64_t bits = 0;
    const bool given = retryd_integer(ctx, order->meta, "bit_length", &bits);
    *w = (wish){.passphrase = retryd_text(ctx, order->meta, "pass_phrase")}; // as Barbican's client spells it
    if (w->passphrase == NULL) w->passphrase = retryd_text(ctx, order->meta, "passphrase");
    w->der = type != NULL && strcmp(type, "application/octet-stream") == 0;
    if (algorithm == NULL) return "meta.algorithm is missing";
    if (strcasecmp(algorithm, "rsa") == 0) return want_rsa(bits, given, w);
    if (strcasecmp(algorithm, "ec") == 0) return want_ec(bits, given, w);
    for (size_t i = 0; i < sizeof BY_NAME / sizeof BY_NAME[0]; i++) {
        if (strcasecmp(algorithm, BY_NAME[i]) == 0) w->kind = BY_NAME[i];
    }
    return w->kind != NULL ? NULL : "meta.algorithm is none of rsa, ec, ed25519, ed448, x25519, x448";
}

static EVP_PKEY *make(const wish *w) {
    if (strcmp(w->kind, "RSA") == 0) return EVP_PKEY_Q_keygen(NULL, NULL, w->kind, w->bits);
    if (strcmp(w->kind, "EC") == 0) return EVP_PKEY_Q_keygen(NULL, NULL, w->kind, w->curve);
    return EVP_PKEY_Q_keygen(NULL, NULL, w->kind);
}

static int write_private(BIO *out, const wish *w, EVP_PKEY *pair) {
    const EVP_CIPHER *cipher = w->passphrase != NULL ? EVP_aes_256_cbc() : NULL;
    const int len = w->passphrase != NULL ? (int)strlen(w->passphrase) : 0;
    return w->der ? i2d_PKCS8PrivateKey_bio(out, pair, cipher, w->passphrase, len, NULL, NULL)
                  : PEM_write_bio_PKCS8PrivateKey(out, pair, cipher, w->passphrase, len, NULL, NULL);
}

static int write_public(BIO *out, const wish *w, EVP_PKEY *pair) {
    return w->der ? i2d_PUBKEY_bio(out, pair) : PEM_write_bio_PUBKEY(out, pair);
}

/* False: OpenSSL could not write it. */
static bool add_member(struct retryd_reply *reply, const char *role, const wish *w, EVP_PKEY *pair,
                       int (*write)(BIO *out, const wish *w, EVP_PKEY *pair)) {
    BIO *out = BIO_new(BIO_s_secmem());
    const bool written = out != NULL && write(out, w, pair) == 1;
    if (written) {
        char *bytes;
        const long len = BIO_get_mem_data(out, &bytes);
        const struct retryd_secret secret = {
            .size = sizeof secret,
            .name = role,
            .content_type = w->der ? "application/octet-stream" : "application/x-pem-file",
            .payload = bytes,
            .payload_len = (size_t)len,
        };
        retryd_reply_member(reply, role, &secret);
    }
    BIO_free(out);
    return written;
}

static void add_passphrase(struct retryd_reply *reply, const char *passphrase) {
    const struct retryd_secret secret = {
        .size = sizeof secret,
        .name = "private_key_passphrase",
        .content_type = "text/plain",
        .payload = passphrase,
        .payload_len = strlen(passphrase),
    };
    retryd_reply_member(reply, "private_key_passphrase", &secret);
}

static void validate(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    wish w;
    const char *why = look(ctx, order, &w);
    if (why != NULL) retryd_reply_failed(reply, 400, why);
}

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    (void)task;
    wish w;
    (void)look(ctx, order, &w); // validate has refused what cannot be
    EVP_PKEY *pair = make(&w);
    retryd_reply_container(reply, retryd_text(ctx, order->meta, "name"));
    if (w.passphrase != NULL) add_passphrase(reply, w.passphrase);
    if (pair != NULL && add_member(reply, "private_key", &w, pair, write_private) &&
        add_member(reply, "public_key", &w, pair, write_public)) {
        retryd_reply_done(reply);
    } else {
        retryd_log(ctx, "OpenSSL could not make a key pair");
        retryd_reply_unavailable(reply, -1);
    }
    EVP_PKEY_free(pair);
}

static const struct retryd_plugin plugin = {
    .abi = RETRYD_PLUGIN_ABI, .size = sizeof plugin, .name = "asymmetric", .validate = validate, .run = run};
RETRYD_PLUGIN(plugin)
