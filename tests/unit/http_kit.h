/* http_kit.h: a real server on a free port with a small face of its own, and a raw client. */
#ifndef TESTS_UNIT_HTTP_KIT_H
#define TESTS_UNIT_HTTP_KIT_H
#include <pthread.h>

#include "http/server.h"

enum { KIT_BODY_MAX = 2 * 1024 * 1024, KIT_HELD_MAX = 1024, KIT_LARGE_BYTES = 16 * 1024 * 1024 };

typedef struct kit {
    rt_server *server;
    rt_face *faces;
    pthread_t thread;
    rt_code ended; /* what rt_server_run returned, once stopped */
    bool running;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    rt_exchange *held[KIT_HELD_MAX]; /* exchanges of "/hold", in order of arrival */
    size_t held_count;
    size_t late_count; /* finished after their client had its answer */
    size_t replies;    /* calls of on_reply */
    unsigned last_status;
} kit;

/* Limits as in server.h's defaults. */
rt_server_config kit_config(void);
/* Faces: "" with these routes, and "/other" with none.
 *   GET, POST /echo/{a}/{b}   200, the request in words
 *   GET /reader               200 from a reader thread; the body names what it found
 *   GET /reader/hold          a reader suspends it; it is then held
 *   POST, GET /hold           held until kit_release
 *   HEAD /head                200
 *   GET, POST /large          200, KIT_LARGE_BYTES of text
 *   GET, POST /reads          200, "here" on the API thread, "elsewhere" once it has moved
 *   POST /reads/after         held; the same, once it is released
 *   GET /impatient            held; "late" after RT_IMPATIENT_MS
 *   PUT, DELETE /only         200 */
void kit_start(kit *k, const rt_server_config *cfg);
void kit_stop(kit *k);       /* and waits until rt_server_run has returned */
void kit_close(kit *k);      /* stops, releases what is held, closes */
void kit_wait_held(kit *k, size_t count); /* until that many are held */
void kit_release(kit *k);    /* resumes all that are held */
void kit_wait_late(kit *k, size_t count); /* until that many were finished late */

int kit_connect(const kit *k);
void kit_send(int fd, const char *bytes);
void kit_send_bytes(int fd, const char *bytes, size_t len);

typedef struct kit_reply {
    unsigned status;
    char head[8192]; /* status line and headers */
    char *body;      /* NUL behind it; owned: kit_reply_free */
    size_t body_len;
} kit_reply;

/* Reads one reply. False: the connection was closed first. Ten seconds without a byte fail the test. */
bool kit_read(int fd, kit_reply *out);
/* The same for the answer to HEAD: no body follows. */
bool kit_read_head(int fd, kit_reply *out);
void kit_reply_free(kit_reply *r);
/* The value of a header in `out` (cut at 256 bytes). False: absent. */
bool kit_header(const kit_reply *r, const char *name, char out[256]);
/* Waits until the other side closes. False: it has not within `ms`. */
bool kit_is_closed(int fd, int ms);
/* One request on a connection of its own; returns the status. 0: closed without a reply. */
unsigned kit_ask(const kit *k, const char *request);

#endif
