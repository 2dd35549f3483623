#include "engine/orders/order_count.h"

#include "base/id.h"
#include "engine/common/name.h"
#include "engine/common/schedule.h"
#include "engine/common/stored.h"

enum { FORMAT = 1 };

rt_str rt_order_count_encode(rt_arena *arena, int64_t count) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_i64(&b, count);
    return rt_pack_finish(&b, arena);
}

bool rt_order_count_decode(rt_str value, int64_t *out) {
    rt_unpack u = {.rest = value};
    const bool known = rt_unpack_u8(&u) == FORMAT;
    const int64_t count = rt_unpack_i64(&u);
    if (!known || u.failed || u.rest.len > 0) return false;
    *out = count;
    return true;
}

/* Absent ones count nothing. */
static rt_code load(rt_tx *tx, rt_str tenant, rt_id number, rt_doc *doc, int64_t *count) {
    *count = 0;
    const rt_code code = rt_doc_load(tx, RT_DOC_ORDER_COUNT, rt_name_id(tx->arena, tenant, number), doc);
    if (code == RT_E_ABSENT) return RT_OK;
    if (code != RT_OK || rt_order_count_decode(doc->value, count)) return code;
    return rt_fail(tx->err, RT_E_CORRUPT, 0, "a count of orders cannot be read");
}

static rt_code save(rt_tx *tx, const rt_doc *was, int64_t count) {
    rt_doc now = *was;
    now.value = rt_order_count_encode(tx->arena, count);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a count of orders");
    rt_tx_put_doc(tx, was->version == 0 ? NULL : was, &now);
    return RT_OK;
}

/* The document that this node writes. Nodes that meet in one wait for each other, and count as well. */
static rt_id own_number(const rt_tx *tx) {
    if (tx->store->sole_owner || tx->schedule == NULL) return RT_ORDER_COUNT_FIRST;
    return 1 + rt_hash_u64(tx->schedule->self) % (RT_ORDER_COUNTS_MAX - 1);
}

static bool see_one(void *ctx, const rt_doc *doc) {
    (void)doc;
    *(bool *)ctx = true;
    return false;
}

static rt_code begin(rt_tx *tx, rt_str tenant, const rt_doc *first, int64_t by) {
    bool older = by < 0;
    const rt_str prefix = rt_name(tx->arena, tenant, RT_STR_EMPTY);
    if (prefix.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a name");
    rt_code code = RT_OK;
    if (!older) code = rt_view_docs(tx->view, RT_DOC_ORDER, prefix, RT_STR_EMPTY, see_one, &older);
    if (code != RT_OK) return code;
    if (!older) return save(tx, first, by);
    // That order may be the first of another node, which has begun to count.
    rt_tx_guard(tx, RT_DOC_ORDER_COUNT, first->name, 0);
    return RT_OK;
}

rt_code rt_order_count_add(rt_tx *tx, rt_str tenant, int64_t by) {
    rt_doc first, own;
    int64_t counted, owned;
    const rt_id number = own_number(tx);
    const rt_code code = load(tx, tenant, RT_ORDER_COUNT_FIRST, &first, &counted);
    if (code != RT_OK && code != RT_E_AGAIN) return code;
    if (number == RT_ORDER_COUNT_FIRST) {
        own = first;
        owned = counted;
    } else {
        const rt_code also = load(tx, tenant, number, &own, &owned); // both in one round trip
        if (also != RT_OK) return also;
    }
    if (code != RT_OK) return code;
    return first.version == 0 ? begin(tx, tenant, &first, by) : save(tx, &own, owned + by);
}
