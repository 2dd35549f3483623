/* listen.h: the socket that a server listens on. */
#ifndef RT_HTTP_LISTEN_H
#define RT_HTTP_LISTEN_H
#include <stdbool.h>
#include <stdint.h>

#include "base/code.h"

/* Opens a non-blocking listening socket; the caller closes *fd. `host` is a numeric address or a name; "" or
 * "*": all addresses, of IPv6 too where there is any. `port` 0: a free one. *bound_port is the one it got. */
RT_MUST_USE rt_code rt_listen_open(const char *host, uint16_t port, int *fd, uint16_t *bound_port,
                                   rt_err *err);

/* Is every address of `host` a loopback address? False also when it does not resolve. */
bool rt_listen_is_loopback(const char *host);

#endif
