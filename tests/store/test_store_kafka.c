/* test_store_kafka.c: the conformance suite on a real broker (RETRYD_TEST_KAFKA, see tests/e2e/kafka_broker.py). */
#include "store/conformance.h"
#include "store/kafka_topics.h"

int main(void) { return store_conformance_run(&KAFKA_FACTORY); }
