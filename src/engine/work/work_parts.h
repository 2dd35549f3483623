/* work_parts.h: what the files of work share among themselves. */
#ifndef RT_ENGINE_WORK_WORK_PARTS_H
#define RT_ENGINE_WORK_WORK_PARTS_H
#include "engine/work/work.h"

/* Copies in the arena of the decision. RT_E_ABSENT: doc->version is 0. */
rt_code rt_work_load(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_doc *doc, rt_work *out);
rt_code rt_rest_load(rt_tx *tx, const rt_entity *e, rt_str process, rt_doc *doc, rt_rest *out);

/* The work `w` of `slot` (its document is `doc`) ends as w->end says: event, answer for who asks again,
 * and the slot is free. The entity is the caller's to save. */
rt_code rt_work_over(rt_tx *tx, rt_entity *e, rt_slot *slot, const rt_doc *doc, rt_work *w, rt_str cause);

#endif
