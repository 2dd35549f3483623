/* schema.h: the tables, and how they come to be as this version wants them.
 *
 * Each step adds; nothing that an older node reads or writes is renamed or dropped in the same version, so
 * that old and new nodes work side by side, and a node of the version before can be started again. `oldest`
 * says who may. One row is the lock: whoever migrates holds it. */
#ifndef RT_STORE_POSTGRES_WIRE_SCHEMA_H
#define RT_STORE_POSTGRES_WIRE_SCHEMA_H
#include <libpq-fe.h>

#include "port/store.h"

/* No other session of this application_name is there; one of a process just killed is given time to end. */
rt_code rt_pg_wait_alone(PGconn *conn, rt_err *err);
/* Makes or migrates the tables; reads the tag. */
rt_code rt_pg_schema_open(PGconn *conn, uint32_t *tag, rt_err *err);

#endif
