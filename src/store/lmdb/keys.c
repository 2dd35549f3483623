#include "store/lmdb/keys.h"

#include <string.h>

#include "base/pack.h"

static const uint64_t SIGN = UINT64_C(1) << 63;

static void put_time(unsigned char out[8], int64_t ms) { rt_put_be64(out, (uint64_t)ms ^ SIGN); }
static int64_t get_time(const unsigned char in[8]) { return (int64_t)(rt_get_be64(in) ^ SIGN); }
static const unsigned char *bytes_of(rt_str s) { return (const unsigned char *)s.ptr; }

void rt_key_place(rt_key *out, rt_id queue, rt_id id) {
    out->len = RT_KEY_PLACE_LEN;
    rt_put_be64(out->bytes, queue);
    rt_put_be64(out->bytes + 8, id);
}

void rt_key_due(rt_key *out, rt_id queue, int64_t due_ms, rt_id id) {
    out->len = RT_KEY_DUE_LEN;
    rt_put_be64(out->bytes, queue);
    put_time(out->bytes + 8, due_ms);
    rt_put_be64(out->bytes + 16, id);
}

void rt_key_doc(rt_long_key *out, rt_doc_kind kind, rt_str name) {
    RT_ASSERT(kind < RT_DOC_KIND_COUNT);
    RT_ASSERT(name.len <= RT_DOC_NAME_MAX);
    out->len = 1 + name.len;
    out->bytes[0] = (unsigned char)kind;
    if (name.len > 0) memcpy(out->bytes + 1, name.ptr, name.len);
}

void rt_key_expiry_id(rt_long_key *out, int64_t at_ms, rt_expiry_kind kind, rt_id id) {
    RT_ASSERT(kind != RT_EXPIRY_DOC);
    out->len = 8 + 1 + 8;
    put_time(out->bytes, at_ms);
    out->bytes[8] = (unsigned char)kind;
    rt_put_be64(out->bytes + 9, id);
}

void rt_key_expiry_doc(rt_long_key *out, int64_t at_ms, rt_str doc_key) {
    RT_ASSERT(doc_key.len >= 1);
    RT_ASSERT(doc_key.len <= RT_KEY_DOC_MAX);
    out->len = 8 + 1 + doc_key.len;
    put_time(out->bytes, at_ms);
    out->bytes[8] = RT_EXPIRY_DOC;
    memcpy(out->bytes + 9, doc_key.ptr, doc_key.len);
}

bool rt_key_read_place(rt_str key, rt_id *queue, rt_id *id) {
    if (key.len != RT_KEY_PLACE_LEN) return false;
    *queue = rt_get_be64(bytes_of(key));
    *id = rt_get_be64(bytes_of(key) + 8);
    return true;
}

bool rt_key_read_due(rt_str key, rt_id *queue, int64_t *due_ms, rt_id *id) {
    if (key.len != RT_KEY_DUE_LEN) return false;
    *queue = rt_get_be64(bytes_of(key));
    *due_ms = get_time(bytes_of(key) + 8);
    *id = rt_get_be64(bytes_of(key) + 16);
    return true;
}

bool rt_key_read_doc(rt_str key, rt_doc_kind *kind, rt_str *name) {
    if (key.len < 2 || key.len > RT_KEY_DOC_MAX) return false;
    const unsigned char first = bytes_of(key)[0];
    if (first == RT_DOC_NONE || first >= RT_DOC_KIND_COUNT) return false;
    *kind = (rt_doc_kind)first;
    *name = (rt_str){.ptr = key.ptr + 1, .len = key.len - 1};
    return true;
}

bool rt_key_read_expiry(rt_str key, rt_expiry *out) {
    if (key.len < 9) return false;
    rt_expiry e = {.at_ms = get_time(bytes_of(key))};
    const rt_str rest = {.ptr = key.ptr + 9, .len = key.len - 9};
    const unsigned char kind = bytes_of(key)[8];
    if (kind == RT_EXPIRY_DOC) {
        if (!rt_key_read_doc(rest, &e.doc_kind, &e.doc_name)) return false;
    } else {
        if (kind > RT_EXPIRY_DOC || rest.len != 8) return false;
        e.id = rt_get_be64(bytes_of(rest));
    }
    e.kind = (rt_expiry_kind)kind;
    *out = e;
    return true;
}
