#include "store/kafka/lines/parts.h"

#include <string.h>

static void remove_line(rt_parts *p, uint32_t i) {
    rt_buf_deinit(&p->lines[i].payload);
    p->count--;
    memmove(&p->lines[i], &p->lines[i + 1], (p->count - i) * sizeof p->lines[0]);
    p->lines[p->count] = (rt_parts_line){0};
}

static uint32_t find_line(const rt_parts *p, uint64_t node) {
    uint32_t i = 0;
    while (i < p->count && p->lines[i].head.node != node) i++;
    return i;
}

static bool goes_on(const rt_parts_line *line, const rt_entry_head *head) {
    return line->head.no == head->no && line->head.epoch == head->epoch && line->head.kind == head->kind &&
           line->head.parts == head->parts && line->got == head->part;
}

/* Whole ones, and those that stopped, are let go of with the record that comes next. */
static void sweep(rt_parts *p, int64_t offset) {
    for (uint32_t i = 0; i < p->count;) {
        const rt_parts_line *line = &p->lines[i];
        if (line->got == line->head.parts || offset - line->first >= RT_PARTS_SPAN) remove_line(p, i);
        else i++;
    }
}

/* The line that the record belongs to. NULL: its beginning was given up. */
static rt_parts_line *line_of(rt_parts *p, const rt_entry_head *head, int64_t offset) {
    uint32_t i = find_line(p, head->node);
    if (i < p->count && goes_on(&p->lines[i], head)) return &p->lines[i];
    if (i < p->count) remove_line(p, i); // a node that begins another has given it up
    if (head->part > 0) return NULL;
    if (p->count == RT_PARTS_MAX) remove_line(p, 0);
    rt_parts_line *line = &p->lines[p->count++];
    *line = (rt_parts_line){.head = *head, .first = offset};
    return line;
}

rt_parts_end rt_parts_add(rt_parts *p, const rt_entry_head *head, int64_t offset, rt_str part, rt_str *out) {
    sweep(p, offset);
    *out = part;
    if (head->parts == 1) return RT_PARTS_WHOLE;
    rt_parts_line *line = line_of(p, head, offset);
    if (line == NULL) return RT_PARTS_MORE;
    if (line->payload.len + part.len > RT_ENTRY_BYTES_MAX) { // nobody writes such a line
        remove_line(p, (uint32_t)(line - p->lines));
        return RT_PARTS_MORE;
    }
    rt_buf_add(&line->payload, part);
    if (line->payload.failed) {
        line->payload.failed = false;
        return RT_PARTS_NOMEM;
    }
    line->got++;
    *out = rt_buf_str(&line->payload);
    return line->got == head->parts ? RT_PARTS_WHOLE : RT_PARTS_MORE;
}

int64_t rt_parts_from(const rt_parts *p, int64_t position) {
    int64_t from = position;
    for (uint32_t i = 0; i < p->count; i++) {
        const rt_parts_line *line = &p->lines[i];
        if (line->got < line->head.parts && line->first < from) from = line->first;
    }
    return from;
}

void rt_parts_deinit(rt_parts *p) {
    for (uint32_t i = 0; i < p->count; i++) rt_buf_deinit(&p->lines[i].payload);
    *p = (rt_parts){0};
}
