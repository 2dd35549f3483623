/* store_plugin.h: a store that somebody else has written, loaded from a shared object. See retryd/store.h. */
#ifndef RT_STORE_PLUGIN_H
#define RT_STORE_PLUGIN_H
#include "port/store.h"

typedef struct rt_store_plugin_config {
    const char *path; /* of the shared object; without a slash: in the current directory */
    const char *rest; /* for the store itself */
    rt_retention retention;
    uint64_t disk_reserve_bytes;
} rt_store_plugin_config;

/* RT_OK: an owned store. The shared object stays loaded until the process ends. RT_E_INVALID: it cannot be loaded, is no
 * store, or was built against another retryd/store.h, in words; otherwise what the store itself says. */
RT_MUST_USE rt_code rt_store_plugin_open(const rt_store_plugin_config *cfg, rt_store **out, rt_err *err);

#endif
