/* tokens.h: the file of tokens: who may come in.
 *
 * One a line, "TOKEN PROJECT"; the project "*" stands for all of them and for the operators' pages. Empty
 * lines and lines that begin with '#' are passed over. Nobody but its owner may read or write the file. */
#ifndef RT_RUNTIME_TOKENS_H
#define RT_RUNTIME_TOKENS_H
#include "face/common/api.h"

enum { RT_TOKENS_MAX = 1024, RT_TOKEN_BYTES_MIN = 16, RT_TOKEN_BYTES_MAX = 512, RT_TOKEN_PROJECT_MAX = 256 };

typedef struct rt_tokens {
    rt_token *list;
    size_t count;
    rt_arena arena;
} rt_tokens;

/* Fills an all-zero *out, for rt_tokens_deinit. RT_E_INVALID names file and line, never the token. A file
 * without a token is an error too: it would open the server to everybody. */
RT_MUST_USE rt_code rt_tokens_read(const char *file, rt_tokens *out, rt_err *err);
RT_MUST_USE rt_code rt_tokens_parse(rt_str text, const char *name, rt_tokens *out, rt_err *err);
void rt_tokens_deinit(rt_tokens *t);

#endif
