/* keys.h: what the keys of the ordered trees look like. Numbers are big endian so that they sort as bytes;
 * times have their sign bit turned, so that negative ones come first.
 *
 *   due      queue, due, id        free, all, dead   queue, id
 *   docs     kind, name            expiry            at, kind, then id or (document kind, name)
 *
 * Trees keyed by one number (jobs, bodies, …) use LMDB's native integers instead. Pure functions. */
#ifndef RT_STORE_LMDB_KEYS_H
#define RT_STORE_LMDB_KEYS_H
#include "port/store.h"

enum {
    RT_KEY_DOC_MAX = 1 + RT_DOC_NAME_MAX,
    RT_KEY_EXPIRY_MAX = 8 + 1 + RT_KEY_DOC_MAX,
    RT_KEY_PLACE_LEN = 16,
    RT_KEY_DUE_LEN = 24
};
_Static_assert(RT_KEY_EXPIRY_MAX <= 511, "LMDB's longest key");

typedef struct rt_key {
    size_t len;
    unsigned char bytes[RT_KEY_DUE_LEN];
} rt_key;

typedef struct rt_long_key {
    size_t len;
    unsigned char bytes[RT_KEY_EXPIRY_MAX];
} rt_long_key;

void rt_key_place(rt_key *out, rt_id queue, rt_id id);
void rt_key_due(rt_key *out, rt_id queue, int64_t due_ms, rt_id id);
/* `name` of at most RT_DOC_NAME_MAX bytes. */
void rt_key_doc(rt_long_key *out, rt_doc_kind kind, rt_str name);
/* `kind` JOB or LEASE. */
void rt_key_expiry_id(rt_long_key *out, int64_t at_ms, rt_expiry_kind kind, rt_id id);
/* `doc_key` as rt_key_doc makes it. */
void rt_key_expiry_doc(rt_long_key *out, int64_t at_ms, rt_str doc_key);

/* Reading survives any bytes. False: no such key. Strings are lent from `key`. */
RT_MUST_USE bool rt_key_read_place(rt_str key, rt_id *queue, rt_id *id);
RT_MUST_USE bool rt_key_read_due(rt_str key, rt_id *queue, int64_t *due_ms, rt_id *id);
RT_MUST_USE bool rt_key_read_doc(rt_str key, rt_doc_kind *kind, rt_str *name);
RT_MUST_USE bool rt_key_read_expiry(rt_str key, rt_expiry *out);

#endif
