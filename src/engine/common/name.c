#include "engine/common/name.h"

#include <string.h>

#include "base/pack.h"

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

bool rt_name_is_word(rt_str name) {
    for (size_t i = 0; i < name.len; i++) {
        if (!is_word(name.ptr[i])) return false;
    }
    return name.len >= 1 && name.len <= RT_NAME_WORD_MAX;
}
bool rt_name_is_entity(rt_str name) {
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) return false;
    }
    return name.len >= 1 && name.len <= RT_ENTITY_NAME_MAX;
}

/* ---- names of documents ------------------------------------------------------------------------------ */

_Static_assert(RT_TENANT_MAX + 1 + RT_PROCESS_NAME_MAX + 1 + RT_ENTITY_NAME_MAX <= RT_DOC_NAME_MAX,
               "every backoff has a document name");
_Static_assert(RT_TENANT_MAX + 1 + RT_KIND_NAME_MAX + 1 + RT_PROCESS_NAME_MAX <= RT_DOC_NAME_MAX,
               "every queue of work has a document name");

static rt_str join(rt_arena *arena, const rt_str parts[], size_t count) {
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += parts[i].len;
    char *name = rt_arena_alloc(arena, len);
    if (name == NULL) return (rt_str){0};
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len > 0) memcpy(name + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    return (rt_str){.ptr = name, .len = len};
}

static const rt_str NUL = {.ptr = "", .len = 1};

rt_str rt_name(rt_arena *arena, rt_str tenant, rt_str name) {
    return join(arena, (const rt_str[]){tenant, NUL, name}, 3);
}

rt_str rt_name_pair(rt_arena *arena, rt_str tenant, rt_str a, rt_str b) {
    return join(arena, (const rt_str[]){tenant, NUL, a, NUL, b}, 5);
}

rt_str rt_name_key(rt_arena *arena, rt_str tenant, rt_id a, rt_str key) {
    unsigned char bytes[8];
    rt_put_be64(bytes, a);
    const rt_str id = {.ptr = (const char *)bytes, .len = sizeof bytes};
    return join(arena, (const rt_str[]){tenant, NUL, id, key}, 4);
}

rt_str rt_name_id(rt_arena *arena, rt_str tenant, rt_id id) {
    return rt_name_key(arena, tenant, id, RT_STR_EMPTY);
}

rt_str rt_name_ids(rt_arena *arena, rt_str tenant, rt_id a, rt_id b) {
    unsigned char bytes[8];
    rt_put_be64(bytes, b);
    return rt_name_key(arena, tenant, a, (rt_str){.ptr = (const char *)bytes, .len = sizeof bytes});
}

rt_str rt_name_queue(rt_arena *arena, rt_id queue) {
    unsigned char *name = rt_arena_alloc(arena, sizeof queue);
    if (name == NULL) return (rt_str){0};
    rt_put_be64(name, queue);
    return (rt_str){.ptr = (const char *)name, .len = sizeof queue};
}

rt_str rt_name_rest(rt_str doc_name) {
    rt_str tenant, rest;
    return rt_str_cut(doc_name, '\0', &tenant, &rest) ? rest : RT_STR_EMPTY;
}

rt_str rt_name_tenant(rt_str doc_name) {
    rt_str tenant, rest;
    (void)rt_str_cut(doc_name, '\0', &tenant, &rest);
    return tenant;
}

/* ---- in a decision ----------------------------------------------------------------------------------- */

rt_code rt_doc_load(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_doc *out) {
    if (name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    *out = (rt_doc){.kind = kind, .name = name};
    rt_doc lent;
    const rt_code code = rt_view_doc(tx->view, kind, name, &lent);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK) {
        out->version = lent.version;
        out->expires_ms = lent.expires_ms;
        out->value = rt_arena_dup(tx->arena, lent.value);
        if (out->value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a document");
    }
    return code;
}
