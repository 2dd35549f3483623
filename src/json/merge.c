#include "json/merge.h"

/* An object of the patch and where it goes; `key` is the next one to look at. */
typedef struct level {
    json_t *target, *patch;
    void *key;
} level;

static json_t *object_at(json_t *target, const char *key) {
    json_t *child = json_object_get(target, key);
    if (json_is_object(child)) return child;
    child = json_object();
    return child != NULL && json_object_set_new(target, key, child) == 0 ? child : NULL;
}

json_t *rt_json_merge(json_t *target, const json_t *patch) {
    if (!json_is_object(patch)) return json_deep_copy(patch);
    json_t *root = json_is_object(target) ? json_incref(target) : json_object();
    if (root == NULL) return NULL;
    level levels[RT_JSON_DEPTH_MAX];
    size_t depth = 0;
    json_t *copy = json_deep_copy(patch); // so that what goes into the target is nobody else's
    bool ok = copy != NULL;
    if (ok) levels[depth++] = (level){.target = root, .patch = copy, .key = json_object_iter(copy)};
    while (ok && depth > 0) {
        level *l = &levels[depth - 1];
        if (l->key == NULL) {
            depth--;
            continue;
        }
        const char *key = json_object_iter_key(l->key);
        json_t *value = json_object_iter_value(l->key);
        l->key = json_object_iter_next(l->patch, l->key);
        if (json_is_null(value)) {
            (void)json_object_del(l->target, key);
        } else if (!json_is_object(value)) {
            ok = json_object_set(l->target, key, value) == 0;
        } else {
            json_t *child = object_at(l->target, key);
            ok = child != NULL && depth < RT_JSON_DEPTH_MAX;
            if (ok)
                levels[depth++] = (level){.target = child, .patch = value, .key = json_object_iter(value)};
        }
    }
    json_decref(copy);
    if (ok) return root;
    json_decref(root);
    return NULL;
}
