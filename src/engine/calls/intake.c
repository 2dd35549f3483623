#include "engine/calls/intake.h"

#include "base/pack.h"
#include "engine/common/name.h"

enum { FORMAT = 1 };

/* ---- the offset ---------------------------------------------------------------------------------------- */

static bool decode(rt_str value, int64_t *offset) {
    rt_unpack u = {.rest = value};
    const uint8_t format = rt_unpack_u8(&u);
    *offset = rt_unpack_i64(&u);
    return format == FORMAT && !u.failed && u.rest.len == 0 && *offset >= 0;
}

rt_code rt_intake_offset(rt_view *v, rt_str log, int64_t *offset) {
    rt_doc doc;
    *offset = -1;
    const rt_code code = rt_view_doc(v, RT_DOC_OFFSET, log, &doc);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    return decode(doc.value, offset) ? RT_OK : RT_E_CORRUPT;
}

static rt_code move_offset(rt_tx *tx, const rt_doc *was, int64_t to) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_i64(&b, to);
    rt_doc now = *was;
    now.value = rt_arena_dup(tx->arena, rt_buf_str(&b));
    rt_buf_deinit(&b);
    if (now.value.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for an offset");
    rt_tx_put_doc(tx, was->version == 0 ? NULL : was, &now);
    return RT_OK;
}

/* ---- the records --------------------------------------------------------------------------------------- */

/* Is it the record that will never do, whenever it is tried? */
static bool is_refusal(rt_code code) {
    return code == RT_E_ABSENT || code == RT_E_INVALID || code == RT_E_TOO_LARGE || code == RT_E_FENCED;
}

typedef struct known_type {
    rt_str name;
    rt_call_type type;
    rt_code code; /* of loading it */
} known_type;

/* Mostly the type of the record before. */
static rt_code load_type(rt_tx *tx, rt_str tenant, rt_str name, known_type *known) {
    if (known->name.ptr != NULL && rt_str_eq(known->name, name)) return known->code;
    uint64_t version;
    known->name = name;
    known->code = rt_call_type_load(tx, tenant, name, &known->type, &version);
    return known->code;
}

static rt_code take_records(rt_tx *tx, rt_intake *c) {
    known_type known = {0};
    for (uint32_t i = 0; i < c->count; i++) {
        rt_intake_record *r = &c->records[i];
        r->refused = RT_OK;
        if (r->aside) continue;
        RT_ASSERT(r->item.type.len > 0);
        rt_code code = load_type(tx, c->tenant, r->item.type, &known);
        if (code == RT_OK) code = rt_call_schedule(tx, c->tenant, &known.type, r->item.type, &r->item);
        if (code != RT_OK && !is_refusal(code)) return code;
        r->refused = code;
        if (code != RT_OK) c->refused++;
        else if (r->item.existed) c->existed++;
    }
    if (c->refused == 0) return RT_OK;
    return rt_fail(tx->err, RT_E_INVALID, 0, "%u of the records can never be events", c->refused);
}

static rt_code decide_intake(rt_tx *tx, rt_command *cmd) {
    rt_intake *c = (rt_intake *)cmd;
    RT_ASSERT(c->count >= 1);
    RT_ASSERT(c->count <= RT_INTAKE_RECORDS_MAX);
    RT_ASSERT(c->to >= 0);
    c->refused = 0;
    c->existed = 0;
    rt_doc doc;
    int64_t offset = -1;
    rt_code code = rt_doc_load(tx, RT_DOC_OFFSET, c->log, &doc);
    if (code != RT_OK && code != RT_E_ABSENT) return code;
    if (code == RT_OK && !decode(doc.value, &offset))
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "the offset of a log cannot be read");
    if (offset != c->from) return rt_fail(tx->err, RT_E_FENCED, 0, "another has gone on with this log");
    code = move_offset(tx, &doc, c->to);
    return code == RT_OK ? take_records(tx, c) : code;
}

void rt_intake_init(rt_intake *c) { *c = (rt_intake){.cmd = {.decide = decide_intake}}; }
