#include "executor/plugin/lines.h"

#include <stdio.h>

static void say_left_out(rt_lines *l, rt_each_line *each, void *ctx) {
    char text[64];
    if (l->left_out == 0) return;
    const int len = snprintf(text, sizeof text, "(%u lines left out)", (unsigned)l->left_out);
    l->left_out = 0;
    each(ctx, (rt_str){.ptr = text, .len = (size_t)len});
}

static void end_line(rt_lines *l, rt_each_line *each, void *ctx) {
    if (l->len > 0 && l->said < RT_LINES_A_SECOND) {
        l->said++;
        each(ctx, (rt_str){.ptr = l->line, .len = l->len});
    } else if (l->len > 0) {
        l->left_out++;
    }
    l->len = 0;
}

void rt_lines_take(rt_lines *l, rt_str bytes, int64_t now_ms, rt_each_line *each, void *ctx) {
    if (now_ms / 1000 != l->second) {
        l->second = now_ms / 1000;
        l->said = 0;
        say_left_out(l, each, ctx);
    }
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned char c = (unsigned char)bytes.ptr[i];
        if (c == '\n') {
            end_line(l, each, ctx);
        } else if (l->len < sizeof l->line) { // the rest of an endless line is left out
            l->line[l->len++] = (c < ' ' && c != '\t') || c == 0x7f ? '?' : (char)c;
        }
    }
}

void rt_lines_end(rt_lines *l, rt_each_line *each, void *ctx) {
    end_line(l, each, ctx);
    say_left_out(l, each, ctx);
}
