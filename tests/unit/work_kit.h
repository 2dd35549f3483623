/* work_kit.h: commands about work with everything that does not matter filled in; the tenant is "p". */
#ifndef WORK_KIT_H
#define WORK_KIT_H
#include "engine/work/work_read.h"
#include "engine_kit.h"

enum { WORK_HISTORY_MS = 1000000 };

int work_setup(void **state);
int work_setup_troubled(void **state);
#define WORK_BOTH(f)                                                                                         \
    cmocka_unit_test_setup_teardown(f, work_setup, kit_teardown), {                                          \
#f "__troubled", f, work_setup_troubled, kit_teardown, NULL                                          \
    }

rt_id work_session(kit *k, uint32_t interval_s);
rt_code work_beat(kit *k, rt_id session, int64_t *deadline_ms);
rt_code work_close(kit *k, rt_id session);
/* `excludes` NULL: none. `backoff` NULL: none. */
void work_process(kit *k, const char *name, const char *excludes, const rt_backoff *backoff);
rt_backoff work_backoff(uint64_t initial_s, uint64_t maximum_s, double exponent);
/* Kind "machine"; wants all registered processes. */
void work_put(kit *k, const char *entity);
rt_code work_delete(kit *k, const char *entity);

/* By kind "machine". */
rt_work_claim work_claim_kind(kit *k, rt_id session, const char *process);
/* One candidate, not strict. */
rt_work_claim work_claim(kit *k, rt_id session, const char *process, const char *entity);
rt_work_claim work_claim_strict(kit *k, rt_id session, const char *process, const char *entity,
                                bool ignore_backoff);
rt_work_end work_end(kit *k, const rt_work *work, rt_event_type verb);
rt_work_end work_fail(kit *k, const rt_work *work, const char *cause);

/* ---- what is stored ---------------------------------------------------------------------------------- */
rt_entity work_entity(kit *k, const char *name);
bool work_has_rest(kit *k, const char *entity, const char *process, rt_rest *out);
/* Events of an entity, oldest first, as initials: "SFSX" (Started, F: Failed, D: Finished, C: Canceled, X:
 * Expired). */
const char *work_history(kit *k, const char *entity);
rt_job work_job(kit *k, const char *entity, const char *process);

#endif
