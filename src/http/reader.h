/* reader.h: threads for the handlers that may wait for the disk. */
#ifndef RT_HTTP_READER_H
#define RT_HTTP_READER_H
#include "http/exchange.h"

enum { RT_READERS_MAX = 64, RT_READER_WAITING_MAX = 512 /* exchanges in front of one reader */ };

typedef struct rt_readers rt_readers;

/* Starts `count` threads, 1 to RT_READERS_MAX. Owned; ended by rt_readers_close. */
RT_MUST_USE rt_code rt_readers_open(uint32_t count, rt_readers **out, rt_err *err);
/* API thread. Has a reader run the handler of x's route; x then comes back through rt_exchange_resume.
 * False: all are full. */
bool rt_readers_hand(rt_readers *r, rt_exchange *x);
/* Runs what was handed over, then ends the threads. NULL is a no-op. */
void rt_readers_close(rt_readers *r);

#endif
