/* frame.h: what server and child say to each other over their socket: a kind, a length, and so many bytes.
 *
 * Either side bounds what it takes: whatever else a plugin writes to the descriptor is no frame. */
#ifndef RT_EXECUTOR_PLUGIN_FRAME_H
#define RT_EXECUTOR_PLUGIN_FRAME_H
#include "base/str.h"

/* The first byte of a frame. Behind three fixed bytes comes the length, 4 bytes little endian. */
typedef enum rt_frame_kind {
    RT_FRAME_NONE = 0,
    /* To the child. */
    RT_FRAME_SETTINGS = 'S', /* JSON object of strings; the first */
    RT_FRAME_RUN = 'R',      /* 4 bytes: the most that the answer may have; then the run as JSON */
    /* From the child. */
    RT_FRAME_READY = 'Y',     /* the plugin is loaded */
    RT_FRAME_PROBLEM = 'P',   /* it is not: why, in words. The last */
    RT_FRAME_ANSWER = 'A',    /* JSON */
    RT_FRAME_TOO_LARGE = 'L', /* the answer would be longer than the run allows */
    RT_FRAME_NONSENSE = 'N'   /* the plugin broke a rule of its reply: which, in words */
} rt_frame_kind;

enum { RT_FRAME_HEAD_BYTES = 8, RT_FRAME_WORDS_MAX = 512 /* of a problem */ };

void rt_frame_head(unsigned char out[RT_FRAME_HEAD_BYTES], rt_frame_kind kind, uint32_t len);

/* A frame that comes in piece by piece. All zero: ready for the first. */
typedef struct rt_frame {
    unsigned char head[RT_FRAME_HEAD_BYTES];
    size_t head_len;
    rt_frame_kind kind;
    char *body; /* owned; `len` bytes and a NUL, once it is whole */
    uint32_t len, have;
} rt_frame;

typedef enum rt_frame_end {
    RT_FRAME_WHOLE,  /* `frame` is one */
    RT_FRAME_MORE,   /* would block */
    RT_FRAME_CLOSED, /* the other side is gone */
    RT_FRAME_BAD     /* not a frame, or longer than `max` */
} rt_frame_end;

/* Reads on from `fd`, at most to the end of one frame. After WHOLE take what it holds, then rt_frame_clear. */
rt_frame_end rt_frame_read(rt_frame *f, int fd, uint32_t max);
void rt_frame_clear(rt_frame *f);

/* Writes a whole frame to a socket that blocks. False: the other side is gone. */
bool rt_frame_send(int fd, rt_frame_kind kind, rt_str body);

#endif
