#include "engine/work/history.h"

#include <inttypes.h>

#include "base/hex.h"
#include "engine/common/name.h"
#include "port/record.h"

enum { ID_DIGITS = 16, INTERVAL_DIGITS_MAX = 20 };
_Static_assert(RT_PROCESS_NAME_MAX + 2 * (1 + ID_DIGITS) + 1 + INTERVAL_DIGITS_MAX + 1 + RT_CAUSE_MAX <=
                   RT_EVENT_TEXT_MAX,
               "stores cut longer texts");

rt_str rt_history_write(rt_arena *arena, const rt_history *h) {
    return rt_arena_printf(arena, "%.*s %016" PRIx64 " %016" PRIx64 " %" PRIu64 " %.*s",
                           RT_STR_ARG(h->process), h->session, h->work, h->interval_s, RT_STR_ARG(h->cause));
}

bool rt_history_read(rt_str text, rt_history *out) {
    rt_str session, work, interval;
    int64_t seconds;
    if (!rt_str_cut(text, ' ', &out->process, &text) || !rt_str_cut(text, ' ', &session, &text)) return false;
    if (!rt_str_cut(text, ' ', &work, &text) || !rt_str_cut(text, ' ', &interval, &out->cause)) return false;
    if (!rt_hex_read_u64(session, &out->session) || !rt_hex_read_u64(work, &out->work)) return false;
    if (!rt_str_to_i64(interval, &seconds) || seconds < 0) return false;
    out->interval_s = (uint64_t)seconds;
    return true;
}

rt_str rt_cause_cut(rt_str cause) {
    if (cause.len <= RT_CAUSE_MAX) return cause;
    size_t len = RT_CAUSE_MAX;
    // The first byte that is cut off must not continue a character.
    while (len > 0 && ((unsigned char)cause.ptr[len] & 0xC0u) == 0x80u) len--;
    return (rt_str){.ptr = cause.ptr, .len = len};
}
