/* postgres_database.h: stores on the PostgreSQL that tests/e2e/postgres.py has started for the test. */
#ifndef RT_TESTS_STORE_POSTGRES_DATABASE_H
#define RT_TESTS_STORE_POSTGRES_DATABASE_H
#include "store/conformance.h"
#include "store/postgres/store_postgres.h"

/* Of a store for tests: its batch's view fetches by itself. */
rt_store_postgres_config postgres_config(void);
/* Drops what a store has made. */
void postgres_empty(void);
/* Runs statements beside all stores. Their first value, as a number; 0: none. */
long long postgres_run(const char *sql);
/* Ends the sessions that stores have open. */
void postgres_end_sessions(void);

extern const store_factory POSTGRES_FACTORY;

#endif
