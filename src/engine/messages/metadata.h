/* metadata.h: a Zaqar queue as it is stored: the client's JSON as it came in, and what the engine needs of it, parsed.
 * The engine never parses JSON: faces fill these structs.
 *
 * A topic is a queue whose name begins with RT_TOPIC_MARK. No queue's own name can, so the two never meet; and since the
 * mark sorts behind all that names are made of, a project's queues come first, then its topics. */
#ifndef RT_ENGINE_MESSAGES_METADATA_H
#define RT_ENGINE_MESSAGES_METADATA_H
#include "engine/common/command.h"
#include "engine/common/name.h"
#include "engine/common/stored.h"
#include "retryd/policy.h"

#define RT_TOPIC_MARK '~'
enum { RT_QUEUE_TITLE_MAX = 1 + RT_NAME_WORD_MAX /* a topic's, with its mark */ };

typedef struct rt_metadata {
    rt_id id;    /* identity: subscriptions belong to it */
    rt_id jobs;  /* the list that holds its messages now; a purge gives it a new one */
    uint32_t max_post_bytes;      /* 0: the server's limit */
    uint32_t default_ttl_s;       /* 0: the server's default */
    uint32_t default_delay_s;     /* 0: the server's; where that is 0 too, posts' own delays are ignored, as Zaqar does */
    uint32_t max_claim_count;     /* 0: no dead-lettering */
    uint32_t dead_letter_ttl_s;   /* 0: keeps its own */
    rt_str dead_letter_queue;     /* empty: none */
    bool has_policy;
    rt_delivery_policy policy;
    rt_str json;                  /* the client's metadata object; "{}" at least */
} rt_metadata;

static inline bool rt_queue_is_topic(rt_str name) { return name.len > 0 && name.ptr[0] == RT_TOPIC_MARK; }
/* The name as clients say it: without the mark. */
static inline rt_str rt_queue_title(rt_str name) {
    return rt_queue_is_topic(name) ? (rt_str){.ptr = name.ptr + 1, .len = name.len - 1} : name;
}

/* Stored form. encode: into the arena; ptr NULL: out of memory. decode lends strings from `value`; false: corrupt. */
rt_str rt_metadata_encode(rt_arena *arena, const rt_metadata *m);
bool rt_metadata_decode(rt_str value, rt_metadata *out);

/* The queue's document and its metadata; RT_E_ABSENT if there is none. Guards it (present or absent) in the decision.
 * `doc` and `out` are copies in the arena. */
rt_code rt_metadata_load(rt_tx *tx, rt_str tenant, rt_str queue, rt_doc *doc, rt_metadata *out);
/* The same; a queue that is absent is created within this change, with empty metadata, as Zaqar does lazily. */
rt_code rt_metadata_load_or_create(rt_tx *tx, rt_str tenant, rt_str queue, rt_doc *doc, rt_metadata *out);

/* Writes a queue that rt_metadata_load found absent (its `doc`): `like` with new ids, and its list's record. */
rt_code rt_metadata_create(rt_tx *tx, rt_str tenant, rt_str queue, const rt_metadata *like, rt_doc *doc, rt_metadata *out);
/* Replaces the metadata of a queue that was loaded. */
rt_code rt_metadata_update(rt_tx *tx, const rt_doc *was, const rt_metadata *now);

#endif
