#include <string.h>

#include "face/common/query.h"
#include "face/orders/parts.h"

enum { PAGE_DEFAULT = 10, PAGE_MAX = 100 };

/* A walk over the orders of a project. It ends with the page, unless only a walk over all of them knows `total`. */
typedef struct walk {
    rt_exchange *x;
    rt_str meta;  /* of the orders that count; empty: all do */
    rt_id marker; /* the page is what follows it; 0: `offset` says where it begins */
    bool has_offset;
    int64_t offset;
    int64_t limit;
    json_t *page;
    bool counted;   /* `total` is known from the start */
    int64_t total;
    int64_t passed; /* of those that count, so far */
    int64_t first;  /* the page's first order among those that count */
    rt_id last;     /* the page's last order */
    bool more, failed;
} walk;

static bool contains(rt_str text, rt_str part) {
    return part.len == 0 || (part.len <= text.len && memmem(text.ptr, text.len, part.ptr, part.len) != NULL);
}

static bool visit(void *ctx, const rt_order *o) {
    walk *w = ctx;
    if (!contains(o->meta, w->meta)) return true;
    const int64_t position = w->passed++;
    const bool ahead = w->marker != 0 ? o->id <= w->marker : position < w->offset;
    if (ahead) return true;
    if ((int64_t)json_array_size(w->page) == w->limit) {
        w->more = true;
        return !w->counted;
    }
    if (w->last == 0) w->first = position;
    w->last = o->id;
    w->failed = json_array_append_new(w->page, rt_show_order(w->x, o)) != 0;
    return !w->failed;
}

/* Whatever stands there, as Barbican takes it. */
static void take_page(rt_exchange *x, walk *w) {
    w->limit = PAGE_DEFAULT;
    if (rt_query_int(x, "limit", &w->limit) == RT_QUERY_FOUND) {
        if (w->limit < 1) w->limit = 1;
        if (w->limit > PAGE_MAX) w->limit = PAGE_MAX;
    }
    w->has_offset = rt_query_int(x, "offset", &w->offset) == RT_QUERY_FOUND && w->offset >= 0;
    if (!w->has_offset) w->offset = 0;
    if (rt_query_str(x, "meta", &w->meta) != RT_QUERY_FOUND) w->meta = RT_STR_EMPTY;
}

static json_t *link_to(const walk *w, int64_t offset, bool forward) {
    rt_buf url = {0};
    rt_buf_add(&url, rt_show_place(w->x, "orders"));
    rt_buf_addf(&url, "?limit=%lld&offset=%lld", (long long)w->limit, (long long)offset);
    if (w->meta.len > 0) {
        rt_buf_add(&url, RT_STR("&meta="));
        rt_query_encode(&url, w->meta);
    }
    // Orders may come and go while a client walks: the marker finds the place again, the offset need not.
    if (forward) {
        rt_buf_addf(&url, "&marker=%s", rt_uuid_format(rt_engine_tag(rt_api_of(w->x)->engine), w->last).s);
    }
    json_t *json = url.failed ? NULL : json_stringn(url.ptr, url.len);
    rt_buf_deinit(&url);
    return json;
}

static json_t *answer(walk *w) {
    const int64_t count = (int64_t)json_array_size(w->page);
    json_t *json = json_pack("{s:O, s:I}", "orders", w->page, "total", (json_int_t)w->total);
    bool fine = json != NULL;
    if (fine && w->more) fine = json_object_set_new(json, "next", link_to(w, w->first + count, true)) == 0;
    if (fine && count > 0 && w->first > 0) {
        const int64_t before = w->first > w->limit ? w->first - w->limit : 0;
        fine = json_object_set_new(json, "previous", link_to(w, before, false)) == 0;
    }
    if (fine) return json;
    json_decref(json);
    return NULL;
}

static rt_code go(walk *w, rt_view *v) {
    const rt_str tenant = rt_tenant_of(w->x);
    rt_code code = w->meta.len > 0 ? RT_E_ABSENT : rt_read_order_count(v, tenant, &w->total);
    w->counted = code == RT_OK;
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    // Those before a marker need not be seen where the link that brought it says how many they are.
    const bool straight = w->counted && w->marker != 0 && w->has_offset;
    if (straight) w->passed = w->offset < w->total ? w->offset : w->total;
    code = rt_read_orders(v, tenant, straight ? w->marker : 0, visit, w);
    if (!w->counted) w->total = w->passed;
    return code;
}

void rt_page_order_list(rt_exchange *x) {
    walk w = {.x = x};
    rt_str marker;
    take_page(x, &w);
    if (rt_query_str(x, "marker", &marker) == RT_QUERY_FOUND &&
        !rt_uuid_parse(rt_engine_tag(rt_api_of(x)->engine), marker, &w.marker)) {
        rt_refusal(x, 400, "The query parameter 'marker' must be the UUID of an order.");
        return;
    }
    rt_view *v = rt_refusal_view(x);
    if (v == NULL) return;
    w.page = json_array();
    const rt_code code = go(&w, v);
    rt_view_close(v);
    if (code != RT_OK) rt_refusal_of(x, code, NULL, "Order");
    else rt_reply_json(x, 200, w.failed ? NULL : answer(&w));
    json_decref(w.page);
}
