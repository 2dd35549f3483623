/* words.h: what operators are told. */
#ifndef RT_STORE_KAFKA_WORDS_H
#define RT_STORE_KAFKA_WORDS_H
#include "store/kafka/inside.h"

#define RT_KS_MENDING "this node was away for too long: its copy is being brought up to date"

/* Any thread. */
void rt_ks_say(const rt_ks *s, bool grave, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Called again and again while `what` does not come: says so after a second, then ever more rarely. False:
 * nobody wants to wait for it any more, and *err says so. */
RT_MUST_USE bool rt_ks_still_waits(rt_ks *s, const char *what, rt_err *err);
void rt_ks_came(rt_ks *s); /* … and it came */

#endif
