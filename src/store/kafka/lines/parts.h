/* parts.h: lines of several records, put together. Pure. */
#ifndef RT_STORE_KAFKA_LINES_PARTS_H
#define RT_STORE_KAFKA_LINES_PARTS_H
#include "store/kafka/lines/entry.h"

enum {
    RT_PARTS_MAX = 32,      /* large lines that are under way at the same time */
    RT_PARTS_SPAN = 1 << 16 /* a line whose last part is not so many records behind its first never ends */
};

typedef struct rt_parts_line {
    rt_entry_head head; /* of its first record */
    int64_t first;      /* offset of that */
    uint32_t got;
    rt_buf payload;
} rt_parts_line;

/* Those that have begun and not ended, oldest first. All zero: none. */
typedef struct rt_parts {
    rt_parts_line lines[RT_PARTS_MAX];
    uint32_t count;
} rt_parts;

typedef enum rt_parts_end {
    RT_PARTS_MORE,  /* taken in, or of no use */
    RT_PARTS_WHOLE, /* *out is a whole payload, lent until the next call */
    RT_PARTS_NOMEM  /* nothing happened */
} rt_parts_end;

/* Takes in the record at `offset`, whose head was taken off. What it does depends on the records alone. */
rt_parts_end rt_parts_add(rt_parts *p, const rt_entry_head *head, int64_t offset, rt_str part, rt_str *out);
/* Where reading has to begin anew to have them all; `position`: there are none. */
int64_t rt_parts_from(const rt_parts *p, int64_t position);
void rt_parts_deinit(rt_parts *p);

#endif
