/* key.h: idempotency keys: whoever asks again, because an answer was lost, finds what was made the first time. For
 * decisions.
 *
 * A document a key, whose kind and name are the caller's: it holds what was made, and a hash of what it was made of. */
#ifndef RT_ENGINE_COMMON_KEY_H
#define RT_ENGINE_COMMON_KEY_H
#include "engine/common/command.h"

enum {
    RT_KEY_KEPT_MS = 24 * 3600 * 1000, /* a key counts so long after something was made with it */
    RT_KEY_HASH_LEN = 32
};

typedef struct rt_key {
    rt_doc doc;  /* version 0: there is none */
    rt_id id;    /* what was made with it; 0: nothing lately */
    unsigned char hash[RT_KEY_HASH_LEN]; /* of `of` */
} rt_key;

/* Looks up the key; also one that this change has written. RT_E_FENCED: it came with another `of` before. */
RT_MUST_USE rt_code rt_key_find(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_str of, rt_key *out);
/* `id` was made with it. */
RT_MUST_USE rt_code rt_key_keep(rt_tx *tx, const rt_key *k, rt_id id);

#endif
