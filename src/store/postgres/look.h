/* look.h: the open batch's view. What it does not know it wants, and answers RT_E_AGAIN; the next load brings
 * it. */
#ifndef RT_STORE_POSTGRES_LOOK_H
#define RT_STORE_POSTGRES_LOOK_H
#include "store/postgres/inside.h"

extern const rt_view_ops rt_pg_look_ops; /* of an rt_pg_batch_view */

#endif
