#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4096 };

struct rt_arena_block {
    rt_arena_block *older;
    size_t cap, used;
    alignas(max_align_t) unsigned char bytes[];
};

static rt_arena_block *add_block(rt_arena *a, size_t need) {
    const size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    size_t total;
    if (__builtin_add_overflow(sizeof(rt_arena_block), cap, &total)) return NULL;
    rt_arena_block *block = malloc(total);
    if (block == NULL) return NULL;
    block->older = a->blocks;
    block->cap = cap;
    block->used = 0;
    a->blocks = block;
    a->bytes += total;
    return block;
}

void *rt_arena_alloc(rt_arena *a, size_t bytes) {
    const size_t align = alignof(max_align_t);
    if (bytes > SIZE_MAX - align) return NULL;
    const size_t need = bytes == 0 ? align : (bytes + align - 1) / align * align;
    rt_arena_block *block = a->blocks;
    if (block == NULL || block->cap - block->used < need) block = add_block(a, need);
    if (block == NULL) return NULL;
    void *out = block->bytes + block->used;
    block->used += need;
    memset(out, 0, need);
    return out;
}

rt_str rt_arena_dup(rt_arena *a, rt_str s) {
    char *copy = rt_arena_alloc(a, s.len + 1);
    if (copy == NULL) return (rt_str){0};
    if (s.len > 0) memcpy(copy, s.ptr, s.len);
    return (rt_str){.ptr = copy, .len = s.len};
}

rt_str rt_arena_vprintf(rt_arena *a, const char *fmt, va_list args) {
    va_list again;
    va_copy(again, args);
    const int need = vsnprintf(NULL, 0, fmt, args);
    char *out = need < 0 ? NULL : rt_arena_alloc(a, (size_t)need + 1);
    if (out != NULL) (void)vsnprintf(out, (size_t)need + 1, fmt, again);
    va_end(again);
    return out == NULL ? (rt_str){0} : (rt_str){.ptr = out, .len = (size_t)need};
}

rt_str rt_arena_printf(rt_arena *a, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const rt_str out = rt_arena_vprintf(a, fmt, args);
    va_end(args);
    return out;
}

static void free_blocks(rt_arena_block *block) {
    while (block != NULL) {
        rt_arena_block *older = block->older;
        free(block);
        block = older;
    }
}

void rt_arena_clear(rt_arena *a) {
    rt_arena_block *keep = a->blocks;
    if (keep == NULL) return;
    free_blocks(keep->older);
    // One outsized request must not stay resident for ever.
    if (keep->cap > BLOCK_BYTES * 16) {
        free(keep);
        *a = (rt_arena){0};
        return;
    }
    keep->older = NULL;
    keep->used = 0;
    a->bytes = sizeof *keep + keep->cap;
}

void rt_arena_deinit(rt_arena *a) {
    free_blocks(a->blocks);
    *a = (rt_arena){0};
}
