/* config_plugin.h: sections of a configuration that are handed to plugins: [plugin.NAME], which retryd itself
 * does not know. Later lines go over earlier ones of the same name. */
#ifndef RT_CONFIG_PLUGIN_H
#define RT_CONFIG_PLUGIN_H
#include "executor/plugin/plugins.h"

enum { RT_CONFIG_PLUGIN_MAX = 256 /* lines of all plugins together */ };

typedef struct rt_config_plugin {
    rt_buf text; /* NAME, key and value in turn, each with a NUL behind it */
    size_t count;
} rt_config_plugin;

/* Is `name` of the form plugin.NAME.key? */
bool rt_config_plugin_is(rt_str name);
/* Takes one that is. RT_E_INVALID: NAME is no plugin's, or there are too many. */
RT_MUST_USE rt_code rt_config_plugin_take(rt_config_plugin *p, rt_str name, rt_str value, rt_err *err);
/* Lends them in order to out[RT_CONFIG_PLUGIN_MAX], until the next change; returns how many. */
size_t rt_config_plugin_list(const rt_config_plugin *p, rt_plugin_setting out[RT_CONFIG_PLUGIN_MAX]);

#endif
