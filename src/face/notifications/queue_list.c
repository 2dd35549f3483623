#include <inttypes.h>
#include <string.h>

#include "face/common/query.h"
#include "face/notifications/caller.h"
#include "face/notifications/queue_metadata.h"
#include "face/notifications/queues.h"
#include "face/notifications/render.h"
#include "json/tree.h"

enum { FILTERS_MAX = 16 };
static const char WHAT[] = "Queues could not be listed.";

/* What is asked for. */
typedef struct listing {
    rt_str marker, name;
    int64_t limit;
    bool detailed, with_count;
    bool given_marker, given_limit, given_detailed, given_name, given_with_count;
    rt_metadata_shown shown;
    struct { rt_str key, value; } filters[FILTERS_MAX]; /* on metadata */
    size_t filters_count;
} listing;

/* A page that is being built. */
typedef struct page {
    const listing *asked;
    rt_buf rows;
    char last[RT_NAME_WORD_MAX];
    size_t last_len;
    int64_t count;
    bool failed;
} page;

static bool takes(rt_exchange *x, const char *name, rt_str *out) {
    return rt_query_str(x, name, out) == RT_QUERY_FOUND;
}

static void take_filters(rt_exchange *x, listing *l) {
    static const char *const OWN[] = {"marker", "limit", "detailed", "name", "with_count"};
    rt_str name, value;
    for (size_t i = 0; rt_exchange_arg_at(x, i, &name, &value) && l->filters_count < FILTERS_MAX; i++) {
        bool own = value.len == 0;
        for (size_t k = 0; k < sizeof OWN / sizeof *OWN; k++) own = own || rt_str_eq(name, rt_str_of(OWN[k]));
        if (own) continue;
        l->filters[l->filters_count].key = name;
        l->filters[l->filters_count].value = value;
        l->filters_count++;
    }
}

static bool take_listing(rt_exchange *x, listing *l) {
    const uint64_t max = rt_limits_of(x)->max_queues_per_page;
    *l = (listing){.marker = RT_STR_EMPTY, .name = RT_STR_EMPTY, .limit = rt_page_default(max),
                   .shown = rt_metadata_shown_of(x)};
    l->given_marker = takes(x, "marker", &l->marker);
    l->given_name = takes(x, "name", &l->name);
    if (!rt_take_int(x, "limit", &l->limit, &l->given_limit) ||
        !rt_take_bool(x, "detailed", &l->detailed, &l->given_detailed) ||
        !rt_take_bool(x, "with_count", &l->with_count, &l->given_with_count)) {
        return false;
    }
    take_filters(x, l);
    if (rt_is_page_size(l->limit, max)) return true;
    rt_zaqar_bad_request(x, "Limit must be at least 1 and no greater than %" PRIu64 ".", max);
    return false;
}

/* ---- which queues -------------------------------------------------------------------------------------- */

/* Is the value what the client wrote? Numbers, texts and truths are compared as they are written. */
static bool equals(const json_t *value, rt_str wanted) {
    int64_t number;
    if (json_is_string(value)) {
        return rt_str_eq((rt_str){.ptr = json_string_value(value), .len = json_string_length(value)}, wanted);
    }
    if (json_is_integer(value)) return rt_str_to_i64(wanted, &number) && number == json_integer_value(value);
    if (json_is_boolean(value)) return rt_str_eq(wanted, json_is_true(value) ? RT_STR("true") : RT_STR("false"));
    return false;
}

static bool passes_filters(const listing *l, rt_str stored) {
    if (l->filters_count == 0) return true;
    json_t *json;
    if (rt_json_parse(stored, &json) != RT_JSON_FINE) return false;
    bool all = true;
    for (size_t i = 0; i < l->filters_count && all; i++) {
        const rt_str key = l->filters[i].key;
        all = equals(json_object_getn(json, key.ptr, key.len), l->filters[i].value);
    }
    json_decref(json);
    return all;
}

static const char *noun_of(const listing *l) { return l->shown.of_topic ? "topics" : "queues"; }

static bool is_wanted(const listing *l, rt_str title, const rt_metadata *m) {
    if (l->name.len > 0 && memmem(title.ptr, title.len, l->name.ptr, l->name.len) == NULL) return false;
    return passes_filters(l, m->json);
}

/* Queues come first, so a list of them ends with the first topic. */
static bool is_over(const listing *l, rt_str name) { return rt_queue_is_topic(name) != l->shown.of_topic; }

static bool add_row(void *ctx, rt_str name, const rt_metadata *m) {
    page *p = ctx;
    const rt_str title = rt_queue_title(name);
    if (is_over(p->asked, name)) return false;
    if (!is_wanted(p->asked, title, m)) return true;
    if (p->count > 0) rt_buf_add(&p->rows, RT_STR(", "));
    rt_buf_addf(&p->rows, "{\"name\": \"%.*s\", \"href\": \"/v2/%s/%.*s\"", RT_STR_ARG(title), noun_of(p->asked),
                RT_STR_ARG(title));
    if (p->asked->detailed) {
        rt_buf_add(&p->rows, RT_STR(", \"metadata\": "));
        p->failed = !rt_metadata_write(&p->rows, m->json, p->asked->shown);
    }
    rt_buf_add_char(&p->rows, '}');
    RT_ASSERT(title.len <= sizeof p->last);
    memcpy(p->last, title.ptr, title.len);
    p->last_len = title.len;
    p->count++;
    return !p->failed && p->count < p->asked->limit;
}

static bool count_row(void *ctx, rt_str name, const rt_metadata *m) {
    page *p = ctx;
    if (is_over(p->asked, name)) return false;
    if (is_wanted(p->asked, rt_queue_title(name), m)) p->count++;
    return true;
}

/* Behind which name a listing begins: the mark alone stands before the first topic. */
static rt_str begin_behind(rt_exchange *x, const listing *l, rt_str marker) {
    static const char MARK[] = {RT_TOPIC_MARK};
    if (!l->shown.of_topic) return marker;
    if (marker.len == 0) return (rt_str){.ptr = MARK, .len = sizeof MARK};
    return rt_arena_printf(rt_exchange_arena(x), "%c%.*s", RT_TOPIC_MARK, RT_STR_ARG(marker));
}

/* ---- the reply ----------------------------------------------------------------------------------------- */

/* What was given, in Zaqar's order; the marker is last unless the client had one. */
static rt_link make_link(const page *p) {
    const listing *l = p->asked;
    const rt_str last = {.ptr = p->last, .len = p->last_len};
    rt_link link = {0};
    if (l->given_marker) rt_link_str(&link, RT_STR("marker"), last);
    if (l->given_limit) rt_link_int(&link, RT_STR("limit"), l->limit);
    if (l->given_detailed) rt_link_bool(&link, RT_STR("detailed"), l->detailed);
    if (l->given_name) rt_link_str(&link, RT_STR("name"), l->name);
    if (l->given_with_count) rt_link_bool(&link, RT_STR("with_count"), l->with_count);
    for (size_t i = 0; i < l->filters_count; i++) rt_link_str(&link, l->filters[i].key, l->filters[i].value);
    if (!l->given_marker) rt_link_str(&link, RT_STR("marker"), last);
    return link;
}

void rt_queues_list(rt_exchange *x) {
    rt_caller caller;
    listing asked;
    rt_view *view;
    if (!rt_caller_admit(x, false, &caller) || !take_listing(x, &asked) || !rt_take_view(x, WHAT, &view)) return;
    page p = {.asked = &asked}, all = {.asked = &asked};
    const rt_str first = begin_behind(x, &asked, RT_STR_EMPTY), behind = begin_behind(x, &asked, asked.marker);
    rt_code code = behind.ptr == NULL ? RT_E_NOMEM : rt_read_queues(view, caller.project, behind, add_row, &p);
    if (code == RT_OK && asked.with_count) code = rt_read_queues(view, caller.project, first, count_row, &all);
    rt_view_close(view);
    if (code == RT_OK && p.failed) code = RT_E_NOMEM;
    if (code != RT_OK) {
        rt_buf_deinit(&p.rows);
        rt_zaqar_fail(x, code, WHAT);
        return;
    }
    rt_buf body = {0};
    rt_buf_addf(&body, "{\"%s\": [", noun_of(&asked));
    rt_buf_add(&body, rt_buf_str(&p.rows));
    rt_buf_add(&body, RT_STR("], "));
    rt_link link = make_link(&p);
    rt_link_write(&body, &link, asked.shown.of_topic ? RT_STR("/v2/topics") : RT_STR("/v2/queues"), p.count > 0);
    if (all.count > 0) rt_buf_addf(&body, ", \"count\": %" PRId64, all.count);
    rt_buf_add_char(&body, '}');
    if (p.rows.failed) body.failed = true;
    rt_buf_deinit(&p.rows);
    rt_render_json(x, &body);
}
