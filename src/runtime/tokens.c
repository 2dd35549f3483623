#include "runtime/tokens.h"

#include <errno.h>
#include <string.h>

#include "runtime/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024 };

static rt_code add_token(rt_tokens *t, rt_str line, const char *name, size_t line_no, rt_err *err) {
    size_t end = 0;
    while (end < line.len && line.ptr[end] != ' ' && line.ptr[end] != '\t') end++;
    const rt_str secret = {.ptr = line.ptr, .len = end};
    const rt_str project = rt_str_trim((rt_str){.ptr = line.ptr + end, .len = line.len - end});
    const char *wrong = project.len == 0 ? "not of the form TOKEN PROJECT" : NULL;
    if (wrong == NULL && secret.len < RT_TOKEN_BYTES_MIN) wrong = "the token is shorter than 16 characters";
    if (wrong == NULL && secret.len > RT_TOKEN_BYTES_MAX) wrong = "the token is longer than 512 characters";
    if (wrong == NULL && project.len > RT_TOKEN_PROJECT_MAX) wrong = "the project is longer than 256 bytes";
    if (wrong == NULL && t->count == RT_TOKENS_MAX) wrong = "more than 1024 tokens";
    for (size_t i = 0; wrong == NULL && i < t->count; i++) {
        if (rt_str_eq(t->list[i].secret, secret)) wrong = "the token was there before";
    }
    if (wrong != NULL) return rt_fail(err, RT_E_INVALID, 0, "%s:%zu: %s", name, line_no, wrong);
    rt_token *token = &t->list[t->count];
    token->secret = rt_arena_dup(&t->arena, secret);
    token->project = rt_arena_dup(&t->arena, project);
    if (token->secret.ptr == NULL || token->project.ptr == NULL) {
        return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", name);
    }
    t->count++;
    return RT_OK;
}

rt_code rt_tokens_parse(rt_str text, const char *name, rt_tokens *out, rt_err *err) {
    rt_tokens t = {0};
    t.list = rt_arena_alloc(&t.arena, RT_TOKENS_MAX * sizeof *t.list);
    rt_code code = t.list == NULL ? rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", name) : RT_OK;
    rt_str rest = text;
    for (size_t line_no = 1; code == RT_OK && rest.len > 0; line_no++) {
        rt_str line;
        (void)rt_str_cut(rest, '\n', &line, &rest);
        line = rt_str_trim(line);
        if (line.len > 0 && line.ptr[0] != '#') code = add_token(&t, line, name, line_no, err);
    }
    if (code == RT_OK && t.count == 0) code = rt_fail(err, RT_E_INVALID, 0, "%s: no token is in it", name);
    if (code != RT_OK) {
        rt_tokens_deinit(&t);
        return code;
    }
    *out = t;
    return RT_OK;
}

rt_code rt_tokens_read(const char *file, rt_tokens *out, rt_err *err) {
    rt_buf text = {0};
    rt_code code = rt_file_read_of("auth.tokens_file", file, FILE_BYTES_MAX, true, &text, err);
    if (code == RT_OK) code = rt_tokens_parse(rt_buf_str(&text), file, out, err);
    if (text.ptr != NULL) explicit_bzero(text.ptr, text.cap);
    rt_buf_deinit(&text);
    return code;
}

void rt_tokens_deinit(rt_tokens *t) {
    rt_arena_deinit(&t->arena);
    *t = (rt_tokens){0};
}
