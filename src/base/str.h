/* str.h: borrowed strings, and one growing buffer.
 *
 * rt_str never owns and need not end in NUL. rt_buf owns what it holds. */
#ifndef RT_BASE_STR_H
#define RT_BASE_STR_H
#include "base/code.h"

rt_str rt_str_of(const char *nul_terminated); /* NULL gives the empty string */
bool rt_str_eq(rt_str a, rt_str b);
bool rt_str_eq_nocase(rt_str a, rt_str b); /* ASCII only */
bool rt_str_starts(rt_str s, rt_str prefix);
int rt_str_cmp(rt_str a, rt_str b); /* bytewise; a shorter string comes first */
rt_str rt_str_trim(rt_str s);       /* without spaces, tabs, CR and LF at both ends */
bool rt_str_has_control(rt_str s);  /* a control character other than a tab: what no header field may have */
/* Cuts `s` at the first `sep`: *head is what stands before it, *rest what follows. False: no `sep`, *head is all of s. */
bool rt_str_cut(rt_str s, char sep, rt_str *head, rt_str *rest);
/* Decimal, whole string, optional sign. False: not a number, or outside int64. */
bool rt_str_to_i64(rt_str s, int64_t *out);
/* Returns an owned NUL-terminated copy; free with free(). NULL: out of memory. */
char *rt_str_dup(rt_str s);
/* Same contents? Takes the same time wherever they differ; the lengths are no secret. */
bool rt_str_eq_secret(rt_str a, rt_str b);

typedef struct rt_buf {
    char *ptr;
    size_t len, cap;
    bool failed; /* memory ran out: what was added since is missing */
} rt_buf;

/* An all-zero rt_buf is empty and ready. Adding to a failed buffer does nothing; check `failed` once at the end. */
void rt_buf_add(rt_buf *b, rt_str s);
void rt_buf_add_char(rt_buf *b, char c);
void rt_buf_addf(rt_buf *b, const char *fmt, ...) RT_PRINTF(2, 3);
rt_str rt_buf_str(const rt_buf *b); /* lends what is in it until the next add */
void rt_buf_clear(rt_buf *b);       /* keeps the memory */
void rt_buf_deinit(rt_buf *b);

#endif
