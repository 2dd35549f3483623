#include "engine/common/key.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/pack.h"
#include "engine/common/name.h"
#include "engine/common/stored.h"

enum { FORMAT = 1 };

static rt_code no_memory(rt_tx *tx) { return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a key"); }

static bool hash_of(rt_str s, unsigned char out[RT_KEY_HASH_LEN]) {
    unsigned int len = RT_KEY_HASH_LEN;
    return EVP_Digest(s.len > 0 ? s.ptr : "", s.len, out, &len, EVP_sha256(), NULL) == 1;
}

rt_code rt_key_find(rt_tx *tx, rt_doc_kind kind, rt_str name, rt_str of, rt_key *out) {
    *out = (rt_key){.id = 0};
    if (name.ptr == NULL || !hash_of(of, out->hash)) return no_memory(tx);
    const rt_op *written = rt_tx_doc_op(tx, kind, name); // by another part of the same request
    rt_code code = RT_OK;
    if (written != NULL) out->doc = *written->doc.now;
    else code = rt_doc_load(tx, kind, name, &out->doc);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_unpack u = {.rest = out->doc.value};
    const bool known = rt_unpack_u8(&u) == FORMAT;
    const rt_id id = rt_unpack_u64(&u);
    if (!known || u.failed || u.rest.len != RT_KEY_HASH_LEN)
        return rt_fail(tx->err, RT_E_CORRUPT, 0, "a key cannot be read");
    if (out->doc.expires_ms <= tx->now_ms) return RT_OK; // not swept yet
    out->id = id;
    return memcmp(u.rest.ptr, out->hash, RT_KEY_HASH_LEN) == 0 ? RT_OK : RT_E_FENCED;
}

rt_code rt_key_keep(rt_tx *tx, const rt_key *k, rt_id id) {
    rt_buf b = {0};
    rt_pack_u8(&b, FORMAT);
    rt_pack_u64(&b, id);
    rt_buf_add(&b, (rt_str){.ptr = (const char *)k->hash, .len = RT_KEY_HASH_LEN});
    rt_doc now = k->doc;
    now.expires_ms = tx->now_ms + RT_KEY_KEPT_MS;
    now.value = rt_pack_finish(&b, tx->arena);
    if (now.value.ptr == NULL) return no_memory(tx);
    rt_tx_put_doc(tx, k->doc.version == 0 ? NULL : &k->doc, &now);
    return RT_OK;
}
