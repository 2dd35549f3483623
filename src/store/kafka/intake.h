/* intake.h: lines of the journal, taken into the copy one after the other. */
#ifndef RT_STORE_KAFKA_INTAKE_H
#define RT_STORE_KAFKA_INTAKE_H
#include "store/kafka/inside.h"

enum { RT_KS_TAKE_IN_LINES = 1000 }; /* at once; then somebody else has a turn */

/* Takes in what has come, at most `max` lines. No batch of the copy is open. */
rt_code rt_ks_take_in(rt_ks *s, uint32_t max, rt_err *err);
/* Everything up to `high`. RT_E_UNAVAILABLE: for `stall_ms` nothing has come. */
RT_MUST_USE rt_code rt_ks_catch_up(rt_ks *s, int64_t high, int64_t stall_ms, rt_err *err);
/* Reads on from where the copy is. */
RT_MUST_USE rt_code rt_ks_read_on(rt_ks *s, rt_err *err);

/* Ends the copy's open batch, the line at `offset` with these items: who cuts sees both or neither. */
RT_MUST_USE rt_code rt_ks_commit(rt_ks *s, const rt_ledger *next, rt_str items, int64_t offset, rt_err *err);
/* A line says that everything before is in the retry topic. */
void rt_ks_note_cut(rt_ks *s, int64_t cut);

#endif
