/* view.h: views of the copy. They show everything to those who look, and to those who take, what is this
 * node's to take. */
#ifndef RT_STORE_KAFKA_VIEW_H
#define RT_STORE_KAFKA_VIEW_H
#include "port/store.h"
#include "store/kafka/gate.h"
#include "store/kafka/share.h"

typedef struct rt_ks_view {
    rt_view base;          /* first */
    rt_view *inner;        /* the copy's */
    const rt_share *share; /* NULL: all is ours */
    rt_gate *gate;         /* that it has gone in by; NULL: it is a batch's, and never closed */
} rt_ks_view;

extern const rt_view_ops rt_ks_view_ops;

/* A view of `local`. The caller has gone in by `gate`: out again when it is closed, or at once on error. */
RT_MUST_USE rt_code rt_ks_view_open(rt_store *local, const rt_share *share, rt_gate *gate, rt_view **out,
                                    rt_err *err);

#endif
