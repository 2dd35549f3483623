/* patch.h: the JSON patches of Zaqar's queue metadata: add, remove and replace of "/metadata/<key>", one level deep. */
#ifndef RT_JSON_PATCH_H
#define RT_JSON_PATCH_H
#include "json/tree.h"

enum { RT_PATCH_CHANGES_MAX = 1000 };

typedef enum rt_patch_op { RT_PATCH_ADD, RT_PATCH_REMOVE, RT_PATCH_REPLACE } rt_patch_op;

typedef struct rt_patch_change {
    rt_patch_op op;
    const char *key;
    json_t *value; /* lent by the document; NULL for remove */
} rt_patch_change;

typedef struct rt_patch {
    rt_patch_change *changes;
    size_t count;
} rt_patch;

/* Reads all operations of `document`; *out lives in `arena` and lends from `document`. RT_E_INVALID: *why is what Zaqar says
 * (in the arena). RT_E_NOMEM. */
RT_MUST_USE rt_code rt_patch_parse(const json_t *document, rt_arena *arena, rt_patch *out, rt_str *why);

/* Applies them in order to `metadata` (an object). `reserved`: the key may be removed or replaced though it is absent.
 * RT_E_ABSENT: *why says which key is not there; `metadata` is half patched then. RT_E_NOMEM. */
RT_MUST_USE rt_code rt_patch_apply(const rt_patch *patch, json_t *metadata, bool (*reserved)(const char *key),
                                   rt_arena *arena, rt_str *why);

#endif
