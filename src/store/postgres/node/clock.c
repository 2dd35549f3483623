#include "store/postgres/node/clock.h"

#include "os/clock.h"

void rt_pg_clock_note(rt_pg_clock *c, int64_t sent_boot_ms, int64_t received_boot_ms, int64_t server_ms) {
    const long long most = server_ms - sent_boot_ms + 1; // the server's milliseconds were cut off
    const long long least = server_ms - received_boot_ms;
    const long long ahead = atomic_load(&c->ahead_ms);
    if (!atomic_exchange(&c->known, true)) atomic_store(&c->ahead_ms, least);
    else if (ahead < least) atomic_store(&c->ahead_ms, least);
    else if (ahead > most) atomic_store(&c->ahead_ms, most);
}

int64_t rt_pg_clock_now(const rt_pg_clock *c) {
    if (!atomic_load(&c->known)) return rt_wall_ms();
    return rt_boot_ms() + (int64_t)atomic_load(&c->ahead_ms);
}
