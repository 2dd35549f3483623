#include "store/plugin/store_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char SYMBOL[] = "retryd_store_plugin_v1";

typedef const struct retryd_store_plugin *entry_function(void);

static rt_code find_entry(const char *path, entry_function **out, rt_err *err) {
    if (path[0] == '\0') return rt_fail(err, RT_E_INVALID, 0, "--store plugin: names no file");
    // A bare name would be looked for where the system keeps its libraries.
    char *full = realpath(path, NULL);
    if (full == NULL) return rt_fail(err, RT_E_INVALID, errno, "the store %s: %s", path, strerror(errno));
    void *object = dlopen(full, RTLD_NOW | RTLD_LOCAL);
    free(full);
    if (object == NULL) {
        const char *why = dlerror();
        if (why == NULL) why = "no reason given";
        return rt_fail(err, RT_E_INVALID, 0, "the store %s cannot be loaded: %s", path, why);
    }
    void *symbol = dlsym(object, SYMBOL);
    if (symbol == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s is no store: it has no symbol %s", path, SYMBOL);
    // ISO C has no cast from an object to a function, POSIX has both in one representation.
    memcpy(out, &symbol, sizeof symbol);
    return RT_OK;
}

/* Both sides read each other's structs, so they have to agree on all of them. */
static rt_code check_sizes(const struct retryd_store_plugin *plugin, const char *path, rt_err *err) {
#define COMPARE(type) \
    if (plugin->type##_size != sizeof(type)) { \
        return rt_fail(err, RT_E_INVALID, 0, \
                       "the store %s has to be built anew: it knows %s with %u bytes, this retryd with %zu", \
                       path, #type, (unsigned)plugin->type##_size, sizeof(type)); \
    }
    RETRYD_STORE_STRUCTS(COMPARE)
#undef COMPARE
    return RT_OK;
}

static rt_code check_plugin(const struct retryd_store_plugin *plugin, const char *path, rt_err *err) {
    if (plugin == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s is no store: %s returns NULL", path, SYMBOL);
    if (plugin->abi != RETRYD_STORE_ABI || plugin->size < sizeof *plugin) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "the store %s has to be built anew: it speaks version %u (%u bytes), this retryd %u (%zu)",
                       path, (unsigned)plugin->abi, (unsigned)plugin->size, RETRYD_STORE_ABI, sizeof *plugin);
    }
    if (plugin->name == NULL || plugin->name[0] == '\0' || plugin->open == NULL)
        return rt_fail(err, RT_E_INVALID, 0, "%s is no store: it has no name or no `open`", path);
    return check_sizes(plugin, path, err);
}

static bool is_whole(const rt_store *s) {
    const rt_store_ops *ops = s->ops;
    return ops != NULL && ops->view != NULL && ops->batch != NULL && ops->load != NULL && ops->apply != NULL &&
           ops->commit != NULL && ops->poll != NULL && ops->abandon != NULL && ops->new_id != NULL &&
           ops->new_seq != NULL && ops->tidy != NULL && ops->close != NULL;
}

rt_code rt_store_plugin_open(const rt_store_plugin_config *cfg, rt_store **out, rt_err *err) {
    RT_ASSERT(cfg->retention.age_ms >= 1);
    RT_ASSERT(cfg->retention.events >= 1);
    entry_function *entry = NULL;
    rt_code code = find_entry(cfg->path, &entry, err);
    if (code != RT_OK) return code;
    const struct retryd_store_plugin *plugin = entry();
    code = check_plugin(plugin, cfg->path, err);
    if (code != RT_OK) return code;
    const struct retryd_store_config config = {
        .size = sizeof config,
        .rest = cfg->rest,
        .retention = cfg->retention,
        .disk_reserve_bytes = cfg->disk_reserve_bytes,
    };
    rt_err why = {.msg = "it does not say why"};
    rt_store *store = NULL;
    code = plugin->open(&config, &store, &why);
    if (code != RT_OK) return rt_fail(err, code, why.sys_errno, "the store %s: %s", plugin->name, why.msg);
    if (store == NULL || !is_whole(store))
        return rt_fail(err, RT_E_INVALID, 0, "the store %s: some of its functions are missing", plugin->name);
    *out = store;
    return RT_OK;
}
