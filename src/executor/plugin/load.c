#include "executor/plugin/load.h"

#include <dlfcn.h>
#include <string.h>

static const char SYMBOL[] = "retryd_plugin_v1";

/* What the first version had: without these nothing can be run. */
enum { SIZE_MIN = offsetof(struct retryd_plugin, run) + sizeof(((struct retryd_plugin *)0)->run) };

rt_code rt_plugin_load(const char *path, struct retryd_plugin *out, rt_err *err) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        const char *why = dlerror();
        return rt_fail(err, RT_E_INVALID, 0, "%s", why != NULL ? why : path);
    }
    const struct retryd_plugin *(*entry)(void);
    void *symbol = dlsym(object, SYMBOL);
    if (symbol == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s: no symbol %s: not a plugin", path, SYMBOL);
    // ISO C has no cast from an object to a function, POSIX has both in one representation.
    memcpy(&entry, &symbol, sizeof entry);
    const struct retryd_plugin *plugin = entry();
    if (plugin == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s: %s returns NULL", path, SYMBOL);
    if (plugin->abi != RETRYD_PLUGIN_ABI) {
        return rt_fail(err, RT_E_INVALID, 0, "%s: was built for ABI %u, this is %u", path,
                       (unsigned)plugin->abi, RETRYD_PLUGIN_ABI);
    }
    if (plugin->size < SIZE_MIN) {
        return rt_fail(err, RT_E_INVALID, 0, "%s: says size %u, at least %u has to be there", path,
                       (unsigned)plugin->size, (unsigned)SIZE_MIN);
    }
    *out = (struct retryd_plugin){0};
    memcpy(out, plugin, plugin->size < sizeof *out ? plugin->size : sizeof *out);
    if (out->name == NULL || out->name[0] == '\0')
        return rt_fail(err, RT_E_INVALID, 0, "%s: has no name", path);
    if (out->run == NULL) return rt_fail(err, RT_E_INVALID, 0, "%s: has no run", path);
    return RT_OK;
}
