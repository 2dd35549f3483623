/* serve_store.h: which store a URL names, opened as the settings say. */
#ifndef RT_SERVE_STORE_H
#define RT_SERVE_STORE_H
#include "config.h"
#include "port/store.h"
#include "runtime/log.h"

/* "lmdb:DIR", "postgresql://…", "postgres://…" or "plugin:FILE?REST". RT_OK: an owned store, which is also the clock of
 * rt_serve_now_ms until rt_serve_store_close. What it has to say while it opens and later goes to `log`, borrowed
 * until then. */
RT_MUST_USE rt_code rt_serve_store_open(const rt_config *config, const char *url, const rt_log *log, rt_store **out,
                                        rt_err *err);
/* The same for a tool that wants the store to itself: one that others use is RT_E_UNAVAILABLE. `force`: do not look for
 * them, where the store itself allows several. */
RT_MUST_USE rt_code rt_serve_store_claim(const rt_config *config, const char *url, bool force, rt_store **out,
                                         rt_err *err);
void rt_serve_store_close(rt_store *store); /* NULL is a no-op */

/* Unix time by the store's clock, where it has one; any thread. */
int64_t rt_serve_now_ms(void);

#endif
