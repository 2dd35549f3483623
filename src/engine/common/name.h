/* name.h: names that people give, and names of documents: whose they are, and what stands behind. */
#ifndef RT_ENGINE_COMMON_NAME_H
#define RT_ENGINE_COMMON_NAME_H
#include "engine/common/command.h"

enum {
    RT_TENANT_MAX = 256,
    RT_NAME_WORD_MAX = 64,
    RT_PROCESS_NAME_MAX = RT_NAME_WORD_MAX,
    RT_KIND_NAME_MAX = RT_NAME_WORD_MAX,
    RT_ENTITY_NAME_MAX = 128
};

/* Letters, digits, '_', '-' and '.', 1 to RT_NAME_WORD_MAX of them: a process, a kind of entities, a type of orders. */
bool rt_name_is_word(rt_str name);
/* 1 to RT_ENTITY_NAME_MAX bytes without control characters. That it is UTF-8 is the caller's to know. */
bool rt_name_is_entity(rt_str name);

/* Document names in the arena; ptr NULL: out of memory. `tenant` and names are within their limits. */
rt_str rt_name(rt_arena *arena, rt_str tenant, rt_str name);             /* "<tenant>\0<name>" */
rt_str rt_name_pair(rt_arena *arena, rt_str tenant, rt_str a, rt_str b); /* "<tenant>\0<a>\0<b>" */
rt_str rt_name_id(rt_arena *arena, rt_str tenant, rt_id id);             /* "<tenant>\0"<id> */
rt_str rt_name_ids(rt_arena *arena, rt_str tenant, rt_id a, rt_id b);    /* "<tenant>\0"<a><b> */
rt_str rt_name_key(rt_arena *arena, rt_str tenant, rt_id a, rt_str key); /* "<tenant>\0"<a><key> */
rt_str rt_name_queue(rt_arena *arena, rt_id queue);                      /* <queue>: there is one of a queue */

/* What stands behind the tenant. */
rt_str rt_name_rest(rt_str doc_name);
rt_str rt_name_tenant(rt_str doc_name);

/* The document of this name as a copy in the arena of the decision. RT_E_ABSENT: out->version is 0. Not
 * guarded: whoever decides on it writes it, or guards it. */
rt_code rt_doc_load(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_doc *out);

#endif
