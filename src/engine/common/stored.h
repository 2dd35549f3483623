/* stored.h: what the stored forms of documents share. */
#ifndef RT_ENGINE_COMMON_STORED_H
#define RT_ENGINE_COMMON_STORED_H
#include "base/arena.h"
#include "base/pack.h"
#include "retryd/policy.h"

/* What was packed as a string in the arena, the buffer freed; ptr NULL: out of memory. */
rt_str rt_pack_finish(rt_buf *b, rt_arena *arena);
bool rt_unpack_bool(rt_unpack *u); /* anything but 0 and 1 counts as failed */
/* Shared by both encodings of a policy in a stored value. A policy that breaks its own rules counts as failed. */
void rt_policy_pack(rt_buf *b, const rt_delivery_policy *p);
void rt_policy_unpack(rt_unpack *u, rt_delivery_policy *p);

#endif
