#include "json/patch.h"

#include <ctype.h>
#include <string.h>

static const char *const OP_NAMES[] = {[RT_PATCH_ADD] = "add", [RT_PATCH_REMOVE] = "remove", [RT_PATCH_REPLACE] = "replace"};
#define OPS_AVAILABLE "add, remove, replace"
enum { TOKENS = 2 };

static rt_code parse_op(const json_t *raw, rt_arena *a, rt_patch_op *out, rt_str *why) {
    const json_t *op = json_object_get(raw, "op");
    if (op == NULL || json_is_null(op)) {
        return rt_json_refuse(why,
                              RT_STR("Unable to find `op` in JSON Schema change. It must be one of the following: "
                                     OPS_AVAILABLE "."));
    }
    for (size_t i = 0; i < sizeof OP_NAMES / sizeof OP_NAMES[0]; i++) {
        if (!json_is_string(op) || strcmp(json_string_value(op), OP_NAMES[i]) != 0) continue;
        *out = (rt_patch_op)i;
        return RT_OK;
    }
    rt_buf text = {0};
    if (json_is_string(op)) rt_buf_add(&text, rt_str_of(json_string_value(op)));
    else rt_json_write(&text, op);
    const rt_str shown = rt_buf_str(&text);
    const rt_str said = rt_arena_printf(a, "Invalid operation: `%.*s`. It must be one of the following: "
                                        OPS_AVAILABLE ".", RT_STR_ARG(shown));
    rt_buf_deinit(&text);
    return rt_json_refuse(why, said);
}

/* Two slashes with nothing but blanks between them, from `p` on. */
static bool has_adjacent_slashes(const char *p) {
    for (; *p != '\0'; p++) {
        if (*p != '/') continue;
        const char *next = p + 1;
        while (isspace((unsigned char)*next)) next++;
        if (*next == '/') return true;
    }
    return false;
}

static bool has_odd_escape(const char *p) {
    for (; *p != '\0'; p++) {
        if (*p == '~' && p[1] != '0' && p[1] != '1') return true;
    }
    return false;
}

/* In Zaqar's order of checks. */
static rt_code check_pointer(const char *pointer, rt_arena *a, rt_str *why) {
    const size_t len = strlen(pointer);
    if (pointer[0] != '/') {
        return rt_json_refuse(why, rt_arena_printf(a, "Pointer `%s` does not start with \"/\".", pointer));
    }
    if (has_adjacent_slashes(pointer + 1)) {
        return rt_json_refuse(why, rt_arena_printf(a, "Pointer `%s` contains adjacent \"/\".", pointer));
    }
    if (len > 1 && pointer[len - 1] == '/') {
        return rt_json_refuse(why, rt_arena_printf(a, "Pointer `%s` end with \"/\".", pointer));
    }
    if (has_odd_escape(pointer)) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "Pointer `%s` contains \"~\" not part of a recognized escape sequence.",
                                              pointer));
    }
    return RT_OK;
}

/* The token without its escapes and without blanks at its ends. */
static char *decode_token(rt_arena *a, rt_str token) {
    const rt_str trimmed = rt_str_trim(token);
    char *out = rt_arena_alloc(a, trimmed.len + 1);
    if (out == NULL) return NULL;
    size_t len = 0;
    for (size_t i = 0; i < trimmed.len; i++) {
        char c = trimmed.ptr[i];
        if (c == '~' && i + 1 < trimmed.len) c = trimmed.ptr[++i] == '1' ? '/' : '~';
        out[len++] = c;
    }
    out[len] = '\0';
    return out;
}

static rt_code parse_pointer(const char *pointer, rt_arena *a, char *tokens[TOKENS], rt_str *why) {
    const rt_code code = check_pointer(pointer, a, why);
    if (code != RT_OK) return code;
    rt_str rest = rt_str_of(pointer + strspn(pointer, "/"));
    const rt_str all = rest;
    size_t count = 0;
    bool more = true;
    while (more) {
        rt_str token;
        more = rt_str_cut(rest, '/', &token, &rest);
        if (count < TOKENS) {
            tokens[count] = decode_token(a, token);
            if (tokens[count] == NULL) return RT_E_NOMEM;
        }
        count++;
    }
    if (count == TOKENS) return RT_OK;
    return rt_json_refuse(why,
                          rt_arena_printf(a, "Invalid JSON pointer for this resource: '/%.*s, e.g /metadata/key'",
                                          RT_STR_ARG(all)));
}

static rt_code parse_change(const json_t *raw, rt_arena *a, rt_patch_change *out, rt_str *why) {
    if (!json_is_object(raw)) return rt_json_refuse(why, RT_STR("Operations must be JSON objects."));
    rt_code code = parse_op(raw, a, &out->op, why);
    if (code != RT_OK) return code;
    const json_t *path = json_object_get(raw, "path");
    // A path that is no string is as good as none.
    if (!json_is_string(path)) {
        return rt_json_refuse(why, RT_STR("Unable to find 'path' in JSON Schema change"));
    }
    if (strlen(json_string_value(path)) != json_string_length(path)) {
        return rt_json_refuse(why, RT_STR("A path can not contain a NUL character."));
    }
    char *tokens[TOKENS];
    code = parse_pointer(json_string_value(path), a, tokens, why);
    if (code != RT_OK) return code;
    out->key = tokens[1];
    out->value = NULL;
    if (out->op == RT_PATCH_REMOVE) return RT_OK;
    out->value = json_object_get(raw, "value");
    if (out->value == NULL) {
        return rt_json_refuse(why,
                              rt_arena_printf(a, "Operation \"%s\" requires a member named \"value\".", OP_NAMES[out->op]));
    }
    if (!rt_str_eq_nocase(rt_str_of(tokens[0]), RT_STR("metadata"))) {
        return rt_json_refuse(why, RT_STR("The root of path must be metadata, e.g /metadata/key."));
    }
    return RT_OK;
}

rt_code rt_patch_parse(const json_t *document, rt_arena *arena, rt_patch *out, rt_str *why) {
    if (!json_is_array(document)) {
        return rt_json_refuse(why, RT_STR("Request body must be a JSON array of operation objects."));
    }
    const size_t count = json_array_size(document);
    if (count > RT_PATCH_CHANGES_MAX) {
        return rt_json_refuse(why,
                              rt_arena_printf(arena, "A patch may have %d operations at most.", RT_PATCH_CHANGES_MAX));
    }
    *out = (rt_patch){.changes = rt_arena_alloc(arena, (count + 1) * sizeof *out->changes), .count = count};
    if (out->changes == NULL) return RT_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const rt_code code = parse_change(json_array_get(document, i), arena, &out->changes[i], why);
        if (code != RT_OK) return code;
    }
    return RT_OK;
}

rt_code rt_patch_apply(const rt_patch *patch, json_t *metadata, bool (*reserved)(const char *key), rt_arena *arena,
                       rt_str *why) {
    for (size_t i = 0; i < patch->count; i++) {
        const rt_patch_change *c = &patch->changes[i];
        const bool there = json_object_get(metadata, c->key) != NULL;
        if (!there && c->op != RT_PATCH_ADD && !reserved(c->key)) {
            *why = rt_arena_printf(arena, "Can't %s non-existent object %s.", OP_NAMES[c->op], c->key);
            return why->ptr == NULL ? RT_E_NOMEM : RT_E_ABSENT;
        }
        if (c->op == RT_PATCH_REMOVE) {
            if (there) (void)json_object_del(metadata, c->key);
        } else if (json_object_set(metadata, c->key, c->value) != 0) {
            return RT_E_NOMEM;
        }
    }
    return RT_OK;
}
