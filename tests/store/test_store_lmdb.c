/* test_store_lmdb.c: the conformance suite on LMDB. */
#include "store/lmdb_dir.h"

int main(void) { return store_conformance_run(&LMDB_FACTORY); }
