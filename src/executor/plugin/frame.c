#include "executor/plugin/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const unsigned char MARK[3] = {'r', 't', 'd'};

void rt_frame_head(unsigned char out[RT_FRAME_HEAD_BYTES], rt_frame_kind kind, uint32_t len) {
    out[0] = (unsigned char)kind;
    memcpy(out + 1, MARK, sizeof MARK);
    for (int i = 0; i < 4; i++) out[4 + i] = (unsigned char)(len >> (8 * i));
}

static bool is_kind(unsigned char c) { return c != '\0' && strchr("SRYPALN", c) != NULL; }

static bool take_head(rt_frame *f, uint32_t max) {
    if (!is_kind(f->head[0]) || memcmp(f->head + 1, MARK, sizeof MARK) != 0) return false;
    f->kind = (rt_frame_kind)f->head[0];
    f->len = 0;
    for (int i = 0; i < 4; i++) f->len |= (uint32_t)f->head[4 + i] << (8 * i);
    if (f->len > max) return false;
    f->body = malloc((size_t)f->len + 1);
    return f->body != NULL;
}

/* WHOLE: `want` bytes are there. */
static rt_frame_end read_some(int fd, void *into, size_t want, size_t *have) {
    while (*have < want) {
        const ssize_t got = recv(fd, (char *)into + *have, want - *have, 0);
        if (got == 0) return RT_FRAME_CLOSED;
        if (got > 0) *have += (size_t)got;
        else if (errno == EAGAIN) return RT_FRAME_MORE;
        else if (errno != EINTR) return RT_FRAME_CLOSED;
    }
    return RT_FRAME_WHOLE;
}

rt_frame_end rt_frame_read(rt_frame *f, int fd, uint32_t max) {
    if (f->body == NULL) {
        const rt_frame_end end = read_some(fd, f->head, sizeof f->head, &f->head_len);
        if (end != RT_FRAME_WHOLE) return end;
        if (!take_head(f, max)) return RT_FRAME_BAD;
    }
    size_t have = f->have;
    const rt_frame_end end = read_some(fd, f->body, f->len, &have);
    f->have = (uint32_t)have;
    if (end == RT_FRAME_WHOLE) f->body[f->len] = '\0';
    return end;
}

void rt_frame_clear(rt_frame *f) {
    free(f->body);
    *f = (rt_frame){0};
}

static bool send_all(int fd, const void *bytes, size_t len) {
    const char *at = bytes;
    while (len > 0) {
        const ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

bool rt_frame_send(int fd, rt_frame_kind kind, rt_str body) {
    unsigned char head[RT_FRAME_HEAD_BYTES];
    rt_frame_head(head, kind, (uint32_t)body.len);
    return send_all(fd, head, sizeof head) && send_all(fd, body.ptr, body.len);
}
