/* client_kit.h: a folder for a spool, and a small server that answers as /v1 of events and work does, at
 * its most basic, and keeps an account of what it was asked. */
#ifndef TEST_CLIENT_KIT_H
#define TEST_CLIENT_KIT_H
#include <jansson.h>
#include <stdatomic.h>

#include "parts.h"

/* A new folder below /tmp, path[64]; it is made, and its "s" is for the spool. */
void kit_folder_make(char path[64]);
void kit_folder_remove(const char *path);
void kit_spool_path(char out[96], const char *folder);

typedef struct kit kit;

/* On a free port; gone and back on the same port with kit_leave and kit_return: what it has been given
 * stays. */
kit *kit_open(void);
void kit_leave(kit *k);
void kit_return(kit *k);
void kit_close(kit *k);
const char *kit_url(const kit *k);
retry_client *kit_client(const kit *k, const char *spool_dir, uint32_t timeout_ms);

/* What the next requests get instead of an answer: so many times this status (0: the request is done, its
 * answer lost). Only requests whose path ends in `suffix` count. */
void kit_upset(kit *k, const char *suffix, unsigned status, unsigned times);
/* Claims, ends and heartbeats of what was made before now find it gone. */
void kit_forget_leases(kit *k);

/* Events as they are kept, one a key, in order of arrival: {"type", "body", "key", "reason", "order_key",
 * …}. A new reference. */
json_t *kit_events(kit *k);
/* The ends of jobs and of work, in order: "finish ID", "fail ID error", … A new reference. */
json_t *kit_ends(kit *k);
unsigned kit_asked(kit *k, const char *suffix); /* requests whose path ends so */
/* Waits (10 s) until so many ends, or requests of a kind, have come. */
void kit_wait_ends(kit *k, size_t count);
void kit_wait_asked(kit *k, const char *suffix, unsigned count);


/* ---- what the tests of more than the spool begin with -------------------------------------------------- */

typedef struct kit_fixture {
    char folder[64], spool[96];
    kit *kit;
} kit_fixture;
int kit_set_up(void **state);
int kit_tear_down(void **state);

retry_code kit_schedule(retry_client *c, const char *type, const char *body, const char *order_key,
                        retry_receipt *receipt, retry_error *error);
/* Member `name` of the i-th event is the string `want`; NULL: null. */
void kit_assert_field(const json_t *events, size_t i, const char *name, const char *want);

#endif
