/* common.h: what the bench programs share. They end the process on any trouble: a bench that limps measures
 * nothing. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t now_us(void); /* monotonic */
/* Listens on 127.0.0.1, not blocking; port 0: a free one, told in *port. */
int listen_local(uint16_t *port);
/* Connects to 127.0.0.1, then sets it not blocking. */
int connect_local(uint16_t port);
void watch(int epoll_fd, int fd, void *ptr);         /* for input, level-triggered */
uint64_t number(const char *text, const char *what); /* decimal; dies on anything else */
/* A JSON object of exactly `bytes` bytes (at least 16), NUL behind it; the caller frees it. */
char *json_of(size_t bytes);

/* How long things took: buckets that are 1/16 of a power of two wide. */
enum { SPREAD_BUCKETS = 64 * 16 };
typedef struct spread {
    uint64_t count, buckets[SPREAD_BUCKETS];
} spread;
void spread_add(spread *s, uint64_t us);
uint64_t spread_at(const spread *s, double share); /* 0.99: the 99th percentile, in us */

/* One HTTP message at the start of data[len]: its whole length, 0 if more is needed. *body is where its body
 * begins. Understands Content-Length only. */
size_t http_message(const char *data, size_t len, size_t *body);

#endif
