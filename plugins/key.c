/* key: orders of symmetric keys: random bytes from OpenSSL.
 *
 * meta: "algorithm" ("aes", "des", "3des", "hmacsha256", …), "bit_length" (a multiple of 8), "name", "mode",
 * "payload_content_type" ("application/octet-stream"). */
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <retryd/plugin.h>
#include <string.h>
#include <strings.h>

enum { KEY_BYTES_MAX = 512 /* 4096 bits */ };

/* Which lengths an algorithm takes, in bits; ending in 0. HMACs take any (RFC 2104). */
static const struct {
    const char *name;
    int64_t bits[4];
} ALGORITHMS[] = {
    {"aes", {128, 192, 256, 0}},
    {"des", {56, 64, 0}},
    {"3des", {112, 168, 192, 0}},
    {"desede", {112, 168, 192, 0}},
    {"hmacsha1", {0}},
    {"hmacsha256", {0}},
    {"hmacsha384", {0}},
    {"hmacsha512", {0}},
};

static bool takes(size_t algorithm, int64_t bits) {
    const int64_t *known = ALGORITHMS[algorithm].bits;
    if (known[0] == 0) return true;
    for (; *known != 0; known++) {
        if (*known == bits) return true;
    }
    return false;
}

/* Why the order cannot be, in words; NULL: it can, and *bytes is the length of its key. */
static const char *look(const struct retryd_ctx *ctx, const struct retryd_order *order, size_t *bytes) {
    const char *algorithm = retryd_text(ctx, order->meta, "algorithm");
    const char *type = retryd_text(ctx, order->meta, "payload_content_type");
    int64_t bits;
    if (algorithm == NULL) return "meta.algorithm is missing";
    if (!retryd_integer(ctx, order->meta, "bit_length", &bits))
        return "meta.bit_length is missing, or no whole number";
    if (bits <= 0 || bits % 8 != 0 || bits > KEY_BYTES_MAX * 8) {
        return "meta.bit_length is no multiple of 8 between 8 and 4096";
    }
    if (type != NULL && strcmp(type, "application/octet-stream") != 0) {
        return "meta.payload_content_type of a key is application/octet-stream";
    }
    for (size_t i = 0; i < sizeof ALGORITHMS / sizeof ALGORITHMS[0]; i++) {
        if (strcasecmp(algorithm, ALGORITHMS[i].name) != 0) continue;
        *bytes = (size_t)bits / 8;
        return takes(i, bits) ? NULL : "meta.bit_length is none that the algorithm takes";
    }
    return "meta.algorithm is none of aes, des, 3des, desede, hmacsha1, hmacsha256, hmacsha384, hmacsha512";
}

static void validate(struct retryd_ctx *ctx, const struct retryd_order *order, struct retryd_reply *reply) {
    size_t bytes;
    const char *why = look(ctx, order, &bytes);
    if (why != NULL) retryd_reply_failed(reply, 400, why);
}

static void run(struct retryd_ctx *ctx, const struct retryd_task *task, const struct retryd_order *order,
                struct retryd_reply *reply) {
    (void)task;
    unsigned char key[KEY_BYTES_MAX];
    size_t bytes = 0;
    (void)look(ctx, order, &bytes); // validate has refused what cannot be
    if (RAND_priv_bytes(key, (int)bytes) != 1) {
        retryd_log(ctx, "OpenSSL has no random bytes");
        retryd_reply_unavailable(reply, -1);
        return;
    }
    const struct retryd_secret secret = {
        .size = sizeof secret,
        .name = retryd_text(ctx, order->meta, "name"),
        .content_type = "application/octet-stream",
        .payload = key,
        .payload_len = bytes,
    };
    retryd_reply_secret(reply, &secret);
    retryd_reply_done(reply);
    OPENSSL_cleanse(key, sizeof key);
}

static const struct retryd_plugin plugin = {
    .abi = RETRYD_PLUGIN_ABI, .size = sizeof plugin, .name = "key", .validate = validate, .run = run};
RETRYD_PLUGIN(plugin)
