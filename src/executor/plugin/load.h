/* load.h: opens a plugin's shared object and looks whether it is one. Runs its constructors, so only ever in
 * a process that may crash. */
#ifndef RT_EXECUTOR_PLUGIN_LOAD_H
#define RT_EXECUTOR_PLUGIN_LOAD_H
#include "base/code.h"
#include "retryd/plugin.h"

/* Stays loaded until the process ends. Whatever is beyond the plugin's own `size` is NULL in *out.
 * RT_E_INVALID: it cannot be loaded or is no plugin of this ABI; the message names the file and the rule. */
RT_MUST_USE rt_code rt_plugin_load(const char *path, struct retryd_plugin *out, rt_err *err);

#endif
