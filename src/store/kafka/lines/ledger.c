#include "store/kafka/lines/ledger.h"

#include <string.h>

enum { FORMAT = 2 };

void rt_ledger_init(rt_ledger *l) { *l = (rt_ledger){.tag = 0}; }

void rt_ledger_encode(const rt_ledger *l, rt_buf *out) {
    rt_pack_u8(out, FORMAT);
    rt_pack_u32(out, l->tag);
    rt_pack_i64(out, l->position);
    rt_pack_i64(out, l->from);
    rt_pack_i64(out, l->cut);
    rt_pack_i64(out, l->at_ms);
    rt_pack_u64(out, l->counter);
    rt_pack_u32(out, l->joined);
    rt_pack_u32(out, l->fences_count);
    for (uint32_t i = 0; i < l->fences_count; i++) {
        rt_pack_u64(out, l->fences[i].node);
        rt_pack_u32(out, l->fences[i].epoch);
    }
    rt_pack_u32(out, l->writers_count);
    for (uint32_t i = 0; i < l->writers_count; i++) {
        rt_pack_u64(out, l->writers[i].node);
        rt_pack_u64(out, l->writers[i].no);
    }
}

bool rt_ledger_decode(rt_str note, rt_ledger *out) {
    rt_unpack u = {.rest = note};
    rt_ledger_init(out);
    const uint8_t format = rt_unpack_u8(&u);
    out->tag = rt_unpack_u32(&u);
    out->position = rt_unpack_i64(&u);
    out->from = rt_unpack_i64(&u);
    out->cut = rt_unpack_i64(&u);
    out->at_ms = rt_unpack_i64(&u);
    out->counter = rt_unpack_u64(&u);
    out->joined = rt_unpack_u32(&u);
    out->fences_count = rt_unpack_u32(&u);
    if (u.failed || format != FORMAT || out->fences_count > RT_LEDGER_FENCES_MAX) return false;
    if (out->from > out->position || out->cut > out->position) return false;
    for (uint32_t i = 0; i < out->fences_count; i++) {
        out->fences[i].node = rt_unpack_u64(&u);
        out->fences[i].epoch = rt_unpack_u32(&u);
    }
    out->writers_count = rt_unpack_u32(&u);
    if (u.failed || out->writers_count > RT_LEDGER_WRITERS_MAX) return false;
    for (uint32_t i = 0; i < out->writers_count; i++) {
        out->writers[i].node = rt_unpack_u64(&u);
        out->writers[i].no = rt_unpack_u64(&u);
    }
    return !u.failed && u.rest.len == 0;
}

static void remove_fence(rt_ledger *l, uint32_t i) {
    l->fences_count--;
    memmove(&l->fences[i], &l->fences[i + 1], (l->fences_count - i) * sizeof l->fences[0]);
}

void rt_ledger_fence(rt_ledger *l, uint64_t node, uint32_t epoch) {
    for (uint32_t i = 0; i < l->fences_count; i++) {
        if (l->fences[i].node != node) continue;
        if (l->fences[i].epoch >= epoch) return;
        remove_fence(l, i);
        break;
    }
    if (l->fences_count == RT_LEDGER_FENCES_MAX) remove_fence(l, 0);
    l->fences[l->fences_count++] = (rt_fence){.node = node, .epoch = epoch};
}

bool rt_ledger_is_fenced(const rt_ledger *l, uint64_t node, uint32_t epoch) {
    for (uint32_t i = 0; i < l->fences_count; i++) {
        if (l->fences[i].node == node) return epoch < l->fences[i].epoch;
    }
    return false;
}

void rt_ledger_count_line(rt_ledger *l, uint64_t node, uint64_t no) {
    uint32_t i = 0;
    while (i < l->writers_count && l->writers[i].node != node) i++;
    if (i == RT_LEDGER_WRITERS_MAX) i = 0;
    if (i < l->writers_count) {
        l->writers_count--;
        memmove(&l->writers[i], &l->writers[i + 1], (l->writers_count - i) * sizeof l->writers[0]);
    }
    l->writers[l->writers_count++] = (rt_writer){.node = node, .no = no};
}

rt_counted rt_ledger_has_counted(const rt_ledger *l, uint64_t node, uint64_t no) {
    for (uint32_t i = 0; i < l->writers_count; i++) {
        if (l->writers[i].node == node) return l->writers[i].no >= no ? RT_COUNTED : RT_COUNTED_NOT;
    }
    return l->writers_count == RT_LEDGER_WRITERS_MAX ? RT_COUNTED_FORGOTTEN : RT_COUNTED_NOT;
}

uint32_t rt_ledger_join(rt_ledger *l) { return l->joined++ % RT_LEDGER_SLOTS; }
