#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rt_str rt_str_of(const char *nul_terminated) {
    if (nul_terminated == NULL) return RT_STR_EMPTY;
    return (rt_str){.ptr = nul_terminated, .len = strlen(nul_terminated)};
}

bool rt_str_eq(rt_str a, rt_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

bool rt_str_eq_nocase(rt_str a, rt_str b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) return false;
    }
    return true;
}

bool rt_str_starts(rt_str s, rt_str prefix) {
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

int rt_str_cmp(rt_str a, rt_str b) {
    const size_t shared = a.len < b.len ? a.len : b.len;
    const int order = shared == 0 ? 0 : memcmp(a.ptr, b.ptr, shared);
    if (order != 0) return order;
    return a.len == b.len ? 0 : (a.len < b.len ? -1 : 1);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool rt_str_has_control(rt_str s) {
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return true;
    }
    return false;
}

rt_str rt_str_trim(rt_str s) {
    while (s.len > 0 && is_blank(s.ptr[0])) s = (rt_str){.ptr = s.ptr + 1, .len = s.len - 1};
    while (s.len > 0 && is_blank(s.ptr[s.len - 1])) s.len--;
    return s;
}

bool rt_str_cut(rt_str s, char sep, rt_str *head, rt_str *rest) {
    const char *at = s.len == 0 ? NULL : memchr(s.ptr, sep, s.len);
    if (at == NULL) {
        *head = s;
        *rest = RT_STR_EMPTY;
        return false;
    }
    const size_t before = (size_t)(at - s.ptr);
    *head = (rt_str){.ptr = s.ptr, .len = before};
    *rest = (rt_str){.ptr = at + 1, .len = s.len - before - 1};
    return true;
}

bool rt_str_to_i64(rt_str s, int64_t *out) {
    size_t at = 0;
    const bool negative = s.len > 0 && s.ptr[0] == '-';
    if (s.len > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+')) at = 1;
    if (at == s.len) return false;
    int64_t value = 0;
    for (; at < s.len; at++) {
        const char c = s.ptr[at];
        if (c < '0' || c > '9') return false;
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        // Towards the sign that is wanted, so that INT64_MIN parses too.
        if (__builtin_add_overflow(value, negative ? -(c - '0') : c - '0', &value)) return false;
    }
    *out = value;
    return true;
}

char *rt_str_dup(rt_str s) {
    char *copy = malloc(s.len + 1);
    if (copy == NULL) return NULL;
    if (s.len > 0) memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';
    return copy;
}

bool rt_str_eq_secret(rt_str a, rt_str b) {
    if (a.len != b.len) return false;
    unsigned differ = 0;
    for (size_t i = 0; i < a.len; i++) {
        differ |= (unsigned)((unsigned char)a.ptr[i] ^ (unsigned char)b.ptr[i]);
    }
    return differ == 0;
}

/* Makes room for `more` bytes and a NUL behind them. */
static bool reserve(rt_buf *b, size_t more) {
    if (b->failed) return false;
    size_t need;
    if (__builtin_add_overflow(b->len, more, &need) || __builtin_add_overflow(need, 1, &need)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap) return true;
    size_t cap = b->cap < 128 ? 128 : b->cap;
    while (cap < need) {
        if (__builtin_mul_overflow(cap, 2, &cap)) cap = need;
    }
    char *grown = realloc(b->ptr, cap);
    if (grown == NULL) {
        b->failed = true;
        return false;
    }
    b->ptr = grown;
    b->cap = cap;
    return true;
}

void rt_buf_add(rt_buf *b, rt_str s) {
    if (s.len == 0 || !reserve(b, s.len)) return;
    memcpy(b->ptr + b->len, s.ptr, s.len);
    b->len += s.len;
    b->ptr[b->len] = '\0';
}

void rt_buf_add_char(rt_buf *b, char c) { rt_buf_add(b, (rt_str){.ptr = &c, .len = 1}); }

void rt_buf_addf(rt_buf *b, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    const int need = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (need < 0) b->failed = true;
    if (need >= 0 && reserve(b, (size_t)need)) {
        (void)vsnprintf(b->ptr + b->len, (size_t)need + 1, fmt, again);
        b->len += (size_t)need;
    }
    va_end(again);
}

rt_str rt_buf_str(const rt_buf *b) {
    return b->len == 0 ? RT_STR_EMPTY : (rt_str){.ptr = b->ptr, .len = b->len};
}

void rt_buf_clear(rt_buf *b) {
    b->len = 0;
    b->failed = false;
}

void rt_buf_deinit(rt_buf *b) {
    free(b->ptr);
    *b = (rt_buf){0};
}
