/* config_table.h: every setting there is: its name, range, default and meaning. The parser and `retryd config --explain`
 * read the same table. */
#ifndef RT_CONFIG_TABLE_H
#define RT_CONFIG_TABLE_H
#include <stddef.h>

#include "config.h"

typedef enum rt_setting_kind {
    RT_SETTING_NUMBER,
    RT_SETTING_BYTES,
    RT_SETTING_BOOL,
    RT_SETTING_TEXT,
    RT_SETTING_CHOICE,
    RT_SETTING_LISTEN,
    RT_SETTING_NETWORKS,
    RT_SETTING_CHOICES, /* a list of words */
    RT_SETTING_URL      /* or empty */
} rt_setting_kind;

typedef struct rt_setting {
    const char *name; /* "group.key" */
    rt_setting_kind kind;
    const char *unit; /* of numbers; the words of a choice or the forms of a URL, separated by '|' */
    uint64_t min, max;
    const char *preset;
    size_t offset;
    const char *meaning;
} rt_setting;

extern const rt_setting rt_settings[];
extern const size_t rt_settings_count;

#endif
