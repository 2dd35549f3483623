#include "serve_store.h"

#include <stdatomic.h>

#include "os/clock.h"
#include "store/lmdb/store_lmdb.h"
#include "store/postgres/store_postgres.h"

/* The faces ask for the time without saying whom. A process serves one store. */
static _Atomic(const rt_store *) clock_store;

int64_t rt_serve_now_ms(void) {
    const rt_store *store = atomic_load(&clock_store);
    return store == NULL ? rt_wall_ms() : store->ops->now_ms(store);
}

static rt_retention retention_of(const rt_config *c) {
    return (rt_retention){.age_ms = (int64_t)c->history_maximum_age_seconds * 1000,
                          .events = c->history_maximum_events};
}

static rt_code open_lmdb(const rt_config *c, const char *dir, rt_store **out, rt_err *err) {
    const rt_store_lmdb_config cfg = {
        .dir = dir,
        .map_bytes = c->store_lmdb_map_bytes,
        .disk_reserve_bytes = c->store_disk_reserve_bytes,
        .retention = retention_of(c),
    };
    return rt_store_lmdb_open(&cfg, out, err);
}

static rt_code open_postgres(const rt_config *c, const char *url, rt_store **out, rt_err *err) {
    const bool direct = c->store_postgres_listen[0] != '\0';
    const rt_store_postgres_config cfg = {
        .url = url,
        .listen_url = direct ? c->store_postgres_listen : NULL,
        .views_max = (uint32_t)c->store_postgres_connections,
        .connect_ms = (uint32_t)c->store_postgres_connect_timeout_ms,
        .statement_ms = (uint32_t)c->store_postgres_statement_timeout_ms,
        .retention = retention_of(c),
    };
    return rt_store_postgres_open(&cfg, out, err);
}

rt_code rt_serve_store_open(const rt_config *config, const char *url, rt_store **out, rt_err *err) {
    const rt_str text = rt_str_of(url);
    const rt_str lmdb = RT_STR("lmdb:");
    rt_code code;
    if (rt_str_starts(text, RT_STR("postgresql://")) || rt_str_starts(text, RT_STR("postgres://"))) {
        code = open_postgres(config, url, out, err);
    } else if (rt_str_starts(text, lmdb) && text.len > lmdb.len) {
        code = open_lmdb(config, url + lmdb.len, out, err);
    } else { // not repeated: what is mistyped may hold a password
        return rt_fail(err, RT_E_INVALID, 0, "--store takes lmdb:DIR or postgresql://…");
    }
    if (code == RT_OK && (*out)->ops->now_ms != NULL) atomic_store(&clock_store, *out);
    return code;
}

void rt_serve_store_close(rt_store *store) {
    atomic_store(&clock_store, NULL);
    rt_store_close(store);
}
