/* arena.h: memory that is given back all at once. One thread at a time. */
#ifndef RT_BASE_ARENA_H
#define RT_BASE_ARENA_H
#include <stdarg.h>

#include "base/str.h"

typedef struct rt_arena_block rt_arena_block;
typedef struct rt_arena {
    rt_arena_block *blocks; /* newest first */
    size_t bytes;           /* asked from malloc so far */
} rt_arena;

/* An all-zero rt_arena is empty and ready. */
/* Aligned for any type, zeroed. NULL: out of memory. Lives until the arena is cleared. */
void *rt_arena_alloc(rt_arena *a, size_t bytes);
/* A NUL-terminated copy that lives as long as the arena. ptr NULL: out of memory. */
rt_str rt_arena_dup(rt_arena *a, rt_str s);
rt_str rt_arena_printf(rt_arena *a, const char *fmt, ...) RT_PRINTF(2, 3);
rt_str rt_arena_vprintf(rt_arena *a, const char *fmt, va_list args) RT_PRINTF(2, 0);
void rt_arena_clear(rt_arena *a); /* keeps one block for what comes next */
void rt_arena_deinit(rt_arena *a);

#endif
