#include "config_plugin.h"

#include <errno.h>
#include <string.h>

static bool split(rt_str full, rt_str *plugin, rt_str *key) {
    rt_str group, rest;
    return rt_str_cut(full, '.', &group, &rest) && rt_str_eq(group, RT_STR("plugin")) &&
           rt_str_cut(rest, '.', plugin, key);
}

bool rt_config_plugin_is(rt_str name) {
    rt_str plugin, key;
    return split(name, &plugin, &key);
}

static void add(rt_buf *b, rt_str s) {
    rt_buf_add(b, s);
    rt_buf_add_char(b, '\0');
}

rt_code rt_config_plugin_take(rt_config_plugin *p, rt_str name, rt_str value, rt_err *err) {
    rt_str plugin, key;
    const bool fits = split(name, &plugin, &key) && key.len > 0 && rt_plugin_name_is_valid(plugin);
    if (!fits) {
        return rt_fail(
            err, RT_E_INVALID, 0,
            "\"%.*s\" is not of the form plugin.NAME.key, NAME being 1 to %d of a-z, 0-9, '_' and '-'",
            RT_STR_ARG(name), RT_PLUGIN_NAME_MAX);
    }
    if (p->count == RT_CONFIG_PLUGIN_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "there are more than %d settings of plugins",
                       RT_CONFIG_PLUGIN_MAX);
    }
    add(&p->text, plugin);
    add(&p->text, key);
    add(&p->text, value);
    if (p->text.failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%.*s", RT_STR_ARG(name));
    p->count++;
    return RT_OK;
}

static rt_str next(const char **at) {
    const rt_str s = rt_str_of(*at);
    *at += s.len + 1;
    return s;
}

size_t rt_config_plugin_list(const rt_config_plugin *p, rt_plugin_setting out[RT_CONFIG_PLUGIN_MAX]) {
    const char *at = p->text.ptr;
    for (size_t i = 0; i < p->count; i++) {
        out[i].plugin = next(&at);
        out[i].key = next(&at);
        out[i].value = next(&at);
    }
    return p->count;
}
