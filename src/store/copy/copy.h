/* copy.h: moves everything that a store holds into an empty one of any kind, with ids, versions, numbers and times. */
#ifndef RT_STORE_COPY_COPY_H
#define RT_STORE_COPY_COPY_H
#include "store/copy/census.h"

typedef enum rt_copy_step { RT_COPY_COUNTING, RT_COPY_COPYING, RT_COPY_CHECKING } rt_copy_step;

/* `done` of `total` records; total 0: not known yet. Called every few thousand records, and at the end of each step. */
typedef void rt_copy_tell(void *ctx, rt_copy_step step, uint64_t done, uint64_t total);

/* Nobody else may use either store meanwhile. How far it is stands in the target: where it was cut off, the same call
 * goes on; where it had come to its end, it says so again. At the end both stores are read and compared, and *out (of
 * the source) says what was moved. RT_E_INVALID: the target holds something else, or the source is not as it was when
 * an earlier call began, or a store cannot be copied at all. RT_E_CORRUPT: they differ in the end. Whatever else: call
 * it again. */
RT_MUST_USE rt_code rt_copy_store(rt_store *from, rt_store *to, rt_copy_tell *tell, void *ctx, rt_census *out,
                                  rt_err *err);

/* RT_E_INVALID: the store is the target of a copy that did not come to its end, and must not be served. */
RT_MUST_USE rt_code rt_copy_check_whole(rt_store *store, rt_err *err);

#endif
