/* webhook_sink.h: an HTTP endpoint on a free port of 127.0.0.1 that behaves, or misbehaves, as the path
 * asks. */
#ifndef TEST_WEBHOOK_SINK_H
#define TEST_WEBHOOK_SINK_H
#include <stdint.h>

/* Paths: /NNN answers that status with the body "answer NNN"; and
 *   /see-other, /found, /loop   303 to /200, 307 to /201, 302 to itself
 *   /to?URL                     307 to URL
 *   /later/VALUE                429 with Retry-After: VALUE
 *   /hang                       takes the request and says nothing
 *   /reset, /close              resets, closes, without an answer
 *   /early                      closes in the middle of the body of a 200
 *   /garbage, /old, /odd        no HTTP; HTTP/0.9; a status line that is none
 *   /huge, /drip, /headers      a body without end at full speed; a byte each 20 ms; headers without end
 *   /binary                     a body of bytes that are no text
 *   /once                       closes the connection after a whole answer, without having said so
 *   /slow                       answers after 50 ms */
typedef struct sink sink;

sink *sink_open(void);
int sink_port(const sink *s);
int sink_connections(sink *s); /* accepted so far */
int sink_requests(sink *s);
int sink_busiest(sink *s);     /* the most requests at one time */
/* The last request as it came in, NUL-terminated; free with free(). */
char *sink_last(sink *s);
void sink_close(sink *s);

#endif
