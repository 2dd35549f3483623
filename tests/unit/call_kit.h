/* call_kit.h: failed calls on the kit of decisions: the parameters that do not matter filled in; "p" is the tenant. */
#ifndef CALL_KIT_H
#define CALL_KIT_H
#include "engine/calls/call_claim.h"
#include "engine/calls/circuit.h"
#include "engine/calls/line.h"
#include "engine/machine/lives.h"
#include "engine_kit.h"

/* A type whose calls are pushed to http://t/, by the default delivery policy, without a circuit. */
rt_call_type call_type(void);
/* The same, fetched by workers. */
rt_call_type call_type_pull(void);
rt_code call_put(kit *k, const char *name, rt_call_type like);
rt_call_type call_get(kit *k, const char *name); /* must be there */
rt_queue call_queue(kit *k, const char *name);   /* of the type; its name is lent */

/* One call with payload "x"; RT_OK is asserted. order_key may be NULL. */
rt_id call_schedule(kit *k, const char *type, const char *order_key);
rt_code call_schedule_item(kit *k, const char *type, rt_call_item *item);
/* RT_OK is asserted. 60 s. */
rt_call_claim call_claim(kit *k, const char *type, uint32_t limit);
rt_code call_finish(kit *k, rt_id id, uint64_t token);
rt_code call_fail(kit *k, rt_id id, uint64_t token);

/* What the machine does with a due job. Returns whether an attempt was to be made; *attempt (may be NULL) is owned. */
bool call_start(kit *k, rt_id id, rt_attempt **attempt);
/* ... and with its outcome. */
void call_settle(kit *k, rt_id id, rt_reason reason, uint16_t status);
void call_settle_outcome(kit *k, const rt_outcome *o);
#endif
