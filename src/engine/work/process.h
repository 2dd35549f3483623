/* process.h: what is done with entities: a registered name, which processes it excludes, and its default
 * backoff. */
#ifndef RT_ENGINE_WORK_PROCESS_H
#define RT_ENGINE_WORK_PROCESS_H
#include "engine/common/backoff.h"
#include "engine/common/name.h"

enum { RT_PROCESS_EXCLUDES_MAX = 32, RT_PROCESSES_MAX = 256 /* of a tenant */ };

typedef struct rt_process {
    int64_t changed_ms;
    rt_str excludes
        [RT_PROCESS_EXCLUDES_MAX]; /* not on one entity at the same time, whichever of the two says so */
    uint32_t excludes_count;
    rt_backoff backoff;
} rt_process;

/* Stored form. encode: into the arena; ptr NULL: out of memory. decode lends strings; false: corrupt. */
rt_str rt_process_encode(rt_arena *arena, const rt_process *p);
bool rt_process_decode(rt_str value, rt_process *out);

/* Registers it, or changes what it was. RT_E_TOO_LARGE: the tenant has RT_PROCESSES_MAX of them. */
typedef struct rt_process_put {
    rt_command cmd;
    rt_str tenant, name;
    rt_process like;
    bool created; /* out */
} rt_process_put;
void rt_process_put_init(rt_process_put *c);

/* For decisions. RT_E_ABSENT: not registered. */
rt_code rt_process_load(rt_tx *tx, rt_str tenant, rt_str name, rt_process *out);
/* May the two not be on one entity at the same time? `process` is that of `name`; `other` need not be
 * registered any more. */
rt_code rt_process_excludes(rt_tx *tx, rt_str tenant, rt_str name, const rt_process *process, rt_str other,
                            bool *out);
/* Names of all processes of a tenant, in the arena: out[RT_PROCESSES_MAX]. */
rt_code rt_process_names(rt_tx *tx, rt_str tenant, rt_str out[], uint32_t *count);

#endif
