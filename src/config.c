#include "config.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "config_table.h"
#include "runtime/file.h"

enum { FILE_BYTES_MAX = 1024 * 1024, NAME_MAX_BYTES = 64, VALUE_BYTES_MAX = 4096 };

/* ---- values -------------------------------------------------------------------------------------------- */

static uint64_t *number_of(rt_config *c, const rt_setting *s) {
    return (uint64_t *)(void *)((char *)c + s->offset);
}
static bool *bool_of(rt_config *c, const rt_setting *s) { return (bool *)(void *)((char *)c + s->offset); }
static char **text_of(rt_config *c, const rt_setting *s) { return (char **)(void *)((char *)c + s->offset); }

static bool is_text(const rt_setting *s) { return s->kind >= RT_SETTING_TEXT; }

/* k, M, G, T: powers of 1024. */
static bool take_suffix(rt_str *value, uint64_t *factor) {
    static const char SUFFIXES[] = "kMGT";
    *factor = 1;
    if (value->len == 0) return false;
    const char *at = strchr(SUFFIXES, value->ptr[value->len - 1]);
    if (at == NULL) return true;
    for (const char *p = SUFFIXES; p <= at; p++) *factor *= 1024;
    value->len--;
    return true;
}

static bool parse_number(const rt_setting *s, rt_str value, uint64_t *out) {
    uint64_t factor = 1;
    int64_t n;
    if (s->kind == RT_SETTING_BYTES && !take_suffix(&value, &factor)) return false;
    if (!rt_str_to_i64(value, &n) || n < 0) return false;
    uint64_t product;
    if (__builtin_mul_overflow((uint64_t)n, factor, &product)) return false;
    *out = product;
    return product >= s->min && product <= s->max;
}

static bool parse_bool(rt_str value, bool *out) {
    static const char *const WORDS[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (!rt_str_eq_nocase(value, rt_str_of(WORDS[i]))) continue;
        *out = i % 2 == 1;
        return true;
    }
    return false;
}

static bool is_one_of(const char *words, rt_str value) {
    rt_str rest = rt_str_of(words), word;
    bool more = true;
    while (more) {
        more = rt_str_cut(rest, '|', &word, &rest);
        if (rt_str_eq(word, value)) return true;
    }
    return false;
}

/* Whether each item of a list, with commas or blanks between them, is one of the words. */
static bool are_some_of(const char *words, rt_str list) {
    size_t begin = 0;
    for (size_t i = 0; i <= list.len; i++) {
        if (i < list.len && strchr(", \t", list.ptr[i]) == NULL) continue;
        const rt_str item = {.ptr = list.ptr + begin, .len = i - begin};
        if (item.len > 0 && !is_one_of(words, item)) return false;
        begin = i + 1;
    }
    return true;
}

/* Whether it is empty, or begins as one of the forms does up to "://" and goes on behind that. */
static bool has_form_of(const char *forms, rt_str url) {
    rt_str rest = rt_str_of(forms), form;
    bool more = url.len > 0;
    while (more) {
        more = rt_str_cut(rest, '|', &form, &rest);
        const char *colon = memchr(form.ptr, ':', form.len);
        const size_t scheme = (size_t)(colon - form.ptr) + 3;
        if (url.len > scheme && memcmp(url.ptr, form.ptr, scheme) == 0) return true;
    }
    return url.len == 0;
}

/* The words of delivery.allow_networks stand for these. */
static const struct {
    const char *word, *networks;
} NETWORK_WORDS[] = {
    {"loopback", "127.0.0.0/8,::1/128"},
    {"private", "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"},
};
enum { NETWORK_WORDS_COUNT = sizeof NETWORK_WORDS / sizeof *NETWORK_WORDS };

static rt_code parse_networks(rt_str list, rt_address_list *out, rt_err *err) {
    rt_buf spelt_out = {0};
    rt_str rest = list;
    while (rest.len > 0) {
        rt_str item;
        (void)rt_str_cut(rest, ',', &item, &rest);
        for (size_t i = 0; i < NETWORK_WORDS_COUNT; i++) {
            if (rt_str_eq(item, rt_str_of(NETWORK_WORDS[i].word)))
                item = rt_str_of(NETWORK_WORDS[i].networks);
        }
        rt_buf_add(&spelt_out, item);
        rt_buf_add_char(&spelt_out, ',');
    }
    rt_err why;
    rt_code code = RT_OK;
    if (spelt_out.failed) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "delivery.allow_networks");
    else if (rt_address_list_parse(rt_buf_str(&spelt_out), out, &why) != RT_OK) {
        code = rt_fail(err, RT_E_INVALID, 0, "delivery.allow_networks: %s", why.msg);
    }
    rt_buf_deinit(&spelt_out);
    return code;
}

rt_code rt_config_networks(const rt_config *c, rt_address_list *out, rt_err *err) {
    return parse_networks(rt_str_of(c->delivery_allow_networks), out, err);
}

/* Writes the items of a list with one comma between them; blanks separate them too. */
static rt_code parse_list(const rt_setting *s, rt_str value, rt_buf *out, rt_err *err) {
    bool between = false;
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        if (c == ',' || c == ' ' || c == '\t') {
            between = out->len > 0;
            continue;
        }
        if (between) rt_buf_add_char(out, ',');
        between = false;
        rt_buf_add_char(out, c);
    }
    if (out->failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name);
    rt_address_list networks;
    return parse_networks(rt_buf_str(out), &networks, err);
}

static rt_code bad_value(const rt_setting *s, rt_str value, rt_err *err) {
    const rt_str shown = {.ptr = value.ptr, .len = value.len > 40 ? 40 : value.len};
    if (s->kind == RT_SETTING_NUMBER || s->kind == RT_SETTING_BYTES) {
        return rt_fail(err, RT_E_INVALID, 0, "%s must be %" PRIu64 " to %" PRIu64 " %s%s, not \"%.*s\"",
                       s->name, s->min, s->max, s->unit,
                       s->kind == RT_SETTING_BYTES ? " (k, M, G, T may follow)" : "", RT_STR_ARG(shown));
    }
    return rt_fail(err, RT_E_INVALID, 0, "%s must be %s, not \"%.*s\"", s->name, s->unit, RT_STR_ARG(shown));
}

static rt_code set_text(rt_config *c, const rt_setting *s, rt_str value, rt_err *err) {
    char *copy = rt_str_dup(value);
    if (copy == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name);
    char **at = text_of(c, s);
    free(*at);
    *at = copy;
    return RT_OK;
}

static rt_code set_value(rt_config *c, const rt_setting *s, rt_str value, rt_err *err) {
    if (value.len > VALUE_BYTES_MAX) {
        return rt_fail(err, RT_E_INVALID, 0, "%s is longer than %d bytes", s->name, VALUE_BYTES_MAX);
    }
    bool fits = true;
    rt_buf list = {0};
    rt_code code = RT_OK;
    char host[RT_HOST_MAX];
    uint16_t port;
    switch (s->kind) {
    case RT_SETTING_NUMBER:
    case RT_SETTING_BYTES: {
        uint64_t number = 0;
        fits = parse_number(s, value, &number);
        if (fits) *number_of(c, s) = number;
        break;
    }
    case RT_SETTING_BOOL: fits = parse_bool(value, bool_of(c, s)); break;
    case RT_SETTING_TEXT: return set_text(c, s, value, err);
    case RT_SETTING_CHOICE:
        fits = is_one_of(s->unit, value);
        if (fits) code = set_text(c, s, value, err);
        break;
    case RT_SETTING_CHOICES:
        fits = are_some_of(s->unit, value);
        if (fits) code = set_text(c, s, value, err);
        break;
    case RT_SETTING_URL:
        fits = has_form_of(s->unit, value);
        if (fits) code = set_text(c, s, value, err);
        break;
    case RT_SETTING_LISTEN:
        code = set_text(c, s, value, err);
        fits = code != RT_OK || rt_config_split_listen(*text_of(c, s), host, &port);
        break;
    case RT_SETTING_NETWORKS:
        code = parse_list(s, value, &list, err);
        if (code == RT_OK) code = set_text(c, s, rt_buf_str(&list), err);
        rt_buf_deinit(&list);
        break;
    }
    return fits ? code : bad_value(s, value, err);
}

bool rt_config_split_listen(const char *listen, char host[RT_HOST_MAX], uint16_t *port) {
    const char *colon = strrchr(listen, ':');
    int64_t number;
    if (colon == NULL || colon[1] == '+' || !rt_str_to_i64(rt_str_of(colon + 1), &number)) return false;
    if (number < 0 || number > UINT16_MAX) return false;
    rt_str name = {.ptr = listen, .len = (size_t)(colon - listen)};
    const bool bracketed = name.len >= 2 && name.ptr[0] == '[' && name.ptr[name.len - 1] == ']';
    if (bracketed) name = (rt_str){.ptr = name.ptr + 1, .len = name.len - 2};
    else if (name.len > 0 && memchr(name.ptr, ':', name.len) != NULL)
        return false; // ::1:80 could be read in two ways
    if (rt_str_eq(name, RT_STR("*"))) name = RT_STR_EMPTY;
    if (name.len >= RT_HOST_MAX) return false;
    memcpy(host, name.ptr, name.len);
    host[name.len] = '\0';
    *port = (uint16_t)number;
    return true;
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const rt_setting *find(rt_str name) {
    for (size_t i = 0; i < rt_settings_count; i++) {
        if (rt_str_eq(name, rt_str_of(rt_settings[i].name))) return &rt_settings[i];
    }
    return NULL;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* How many letters must be put in, left out or changed. Source: Wagner and Fischer, 1974. */
static size_t edit_distance(rt_str a, rt_str b) {
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++) row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            const size_t above = row[j];
            const size_t changed = diagonal + (a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1);
            row[j] = least(changed, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b.len];
}

static rt_code unknown(rt_str name, rt_err *err) {
    const rt_str shown = {.ptr = name.ptr, .len = least(name.len, NAME_MAX_BYTES)};
    const rt_setting *closest = NULL;
    size_t best = shown.len / 3 + 1; // what is farther off was not meant
    for (size_t i = 0; i < rt_settings_count; i++) {
        const size_t distance = edit_distance(shown, rt_str_of(rt_settings[i].name));
        if (distance > best || (distance == best && closest != NULL)) continue;
        best = distance;
        closest = &rt_settings[i];
    }
    if (closest == NULL)
        return rt_fail(err, RT_E_INVALID, 0, "there is no setting \"%.*s\"; `retryd config --explain` lists them all",
                       RT_STR_ARG(shown));
    return rt_fail(err, RT_E_INVALID, 0, "there is no setting \"%.*s\"; did you mean %s?", RT_STR_ARG(shown),
                   closest->name);
}

static rt_code assign(rt_config *c, rt_str name, rt_str value, rt_err *err) {
    const rt_setting *s = find(name);
    if (s != NULL) return set_value(c, s, value, err);
    return rt_config_plugin_is(name) ? rt_config_plugin_take(&c->plugin, name, value, err)
                                     : unknown(name, err);
}

rt_code rt_config_assign(rt_config *c, const char *assignment, rt_err *err) {
    rt_str name, value;
    if (!rt_str_cut(rt_str_of(assignment), '=', &name, &value)) {
        return rt_fail(err, RT_E_INVALID, 0, "\"%.60s\" is not of the form group.key=value", assignment);
    }
    return assign(c, rt_str_trim(name), rt_str_trim(value), err);
}

/* ---- files --------------------------------------------------------------------------------------------- */

/* What inih reads from and tells. It counts no lines for its handler, so the reader does. */
typedef struct reading {
    rt_config *config;
    const char *name;
    rt_str rest;
    size_t line_no;
    bool continues; /* the line begins with a space: it goes on with the setting before it */
    rt_code code;   /* of the first line with a wrong setting */
    size_t wrong_no; /* and its number */
    rt_err *err;
} reading;

static void wrong_line(reading *r, const rt_err *why) {
    if (r->code != RT_OK) return;
    r->wrong_no = r->line_no;
    r->code = rt_fail(r->err, why->code, why->sys_errno, "%s:%zu: %s", r->name, r->line_no, why->msg);
}

/* As fgets, but never part of a line: inih would take the rest of a longer one for a line of its own. */
static char *read_line(char *to, int num, void *stream) {
    reading *r = stream;
    if (r->rest.len == 0 || num < 2) return NULL;
    rt_str line;
    (void)rt_str_cut(r->rest, '\n', &line, &r->rest);
    r->line_no++;
    rt_err why = {.code = RT_OK};
    if (line.len > (size_t)num - 2) {
        (void)rt_fail(&why, RT_E_INVALID, 0,
                      "the line is longer than %d bytes (a list may go on in lines that begin with a space)",
                      num - 2);
    } else if (line.len > 0 && memchr(line.ptr, '\0', line.len) != NULL) {
        (void)rt_fail(&why, RT_E_INVALID, 0, "there is a NUL in it");
    }
    if (why.code != RT_OK) {
        wrong_line(r, &why);
        line = RT_STR_EMPTY;
    }
    r->continues = line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t');
    memcpy(to, line.ptr, line.len);
    to[line.len] = '\n';
    to[line.len + 1] = '\0';
    return to;
}

/* `s` NULL: the setting of a plugin. */
static rt_code append(rt_config *c, const rt_setting *s, rt_str name, const char *value, rt_err *err) {
    if (s == NULL || s->kind != RT_SETTING_NETWORKS) {
        return rt_fail(err, RT_E_INVALID, 0,
                       "a line that begins with a space goes on with a list, but %.*s is none", RT_STR_ARG(name));
    }
    rt_buf all = {0};
    rt_buf_addf(&all, "%s,%s", *text_of(c, s), value);
    const rt_code code = all.failed ? rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", s->name)
                                    : set_value(c, s, rt_buf_str(&all), err);
    rt_buf_deinit(&all);
    return code;
}

static int take_line(void *user, const char *group, const char *key, const char *value) {
    reading *r = user;
    rt_err why = {.code = RT_OK};
    rt_buf name = {0};
    rt_buf_addf(&name, "%s.%s", group, key);
    const rt_setting *s = find(rt_buf_str(&name));
    rt_code code;
    if (name.failed) code = rt_fail(&why, RT_E_NOMEM, ENOMEM, "out of memory");
    else if (r->continues && (s != NULL || rt_config_plugin_is(rt_buf_str(&name))))
        code = append(r->config, s, rt_buf_str(&name), value, &why);
    else code = assign(r->config, rt_buf_str(&name), rt_str_of(value), &why);
    rt_buf_deinit(&name);
    if (code != RT_OK) wrong_line(r, &why);
    return code == RT_OK;
}

rt_code rt_config_parse(rt_config *c, rt_str text, const char *name, rt_err *err) {
    reading r = {.config = c, .name = name, .rest = text, .code = RT_OK, .err = err};
    const int line = ini_parse_stream(read_line, &r, take_line, &r);
    if (line < 0) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", name);
    // inih goes on behind a line that it cannot read, and tells the first one in the end.
    const bool unreadable = line > 0 && (r.code == RT_OK || (size_t)line < r.wrong_no);
    if (unreadable) return rt_fail(err, RT_E_INVALID, 0, "%s:%d: neither [group] nor key = value", name, line);
    return r.code;
}

rt_code rt_config_read(rt_config *c, const char *file, rt_err *err) {
    rt_buf text = {0};
    rt_code code = rt_file_read(file, FILE_BYTES_MAX, false, &text, err);
    if (code == RT_OK) code = rt_config_parse(c, rt_buf_str(&text), file, err);
    rt_buf_deinit(&text);
    return code;
}

/* ---- all of them --------------------------------------------------------------------------------------- */

rt_code rt_config_init(rt_config *c, rt_err *err) {
    *c = (rt_config){0};
    for (size_t i = 0; i < rt_settings_count; i++) {
        const rt_code code = set_value(c, &rt_settings[i], rt_str_of(rt_settings[i].preset), err);
        if (code == RT_OK) continue;
        rt_config_deinit(c);
        return code;
    }
    return RT_OK;
}

void rt_config_deinit(rt_config *c) {
    for (size_t i = 0; i < rt_settings_count; i++) {
        if (is_text(&rt_settings[i])) free(*text_of(c, &rt_settings[i]));
    }
    rt_buf_deinit(&c->plugin.text);
    *c = (rt_config){0};
}

static void explain_range(const rt_setting *s, rt_buf *out) {
    if (s->kind == RT_SETTING_NUMBER || s->kind == RT_SETTING_BYTES) {
        rt_buf_addf(out, "# %s, %" PRIu64 " to %" PRIu64 "%s\n", s->unit, s->min, s->max,
                    s->kind == RT_SETTING_BYTES ? "; k, M, G, T may follow a number" : "");
    } else {
        rt_buf_addf(out, "# %s\n", s->unit);
    }
}

void rt_config_explain(rt_buf *out) {
    rt_str group_before = RT_STR_EMPTY;
    for (size_t i = 0; i < rt_settings_count; i++) {
        const rt_setting *s = &rt_settings[i];
        rt_str group, key;
        (void)rt_str_cut(rt_str_of(s->name), '.', &group, &key);
        if (!rt_str_eq(group, group_before)) {
            rt_buf_addf(out, "%s[%.*s]\n", i == 0 ? "" : "\n\n", RT_STR_ARG(group));
        }
        group_before = group;
        rt_buf_addf(out, "\n# %s\n", s->meaning);
        explain_range(s, out);
        rt_buf_addf(out, "#%.*s = %s\n", RT_STR_ARG(key), s->preset);
    }
}
