/* test_store_postgres.c: the conformance suite on PostgreSQL. */
#include "store/postgres_database.h"

int main(void) { return store_conformance_run(&POSTGRES_FACTORY); }
