#include "engine/messages/message_queue.h"

#include "engine/common/queue.h"
#include "engine/messages/subscription.h"

static rt_code decide_create(rt_tx *tx, rt_command *cmd) {
    rt_queue_create *c = (rt_queue_create *)cmd;
    rt_doc doc;
    rt_metadata metadata;
    const rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    c->existed = code == RT_OK;
    if (code != RT_E_ABSENT) return code;
    return rt_metadata_create(tx, c->tenant, c->queue, &c->like, &doc, &metadata);
}

void rt_queue_create_init(rt_queue_create *c) { *c = (rt_queue_create){.cmd = {.decide = decide_create}}; }

static rt_code decide_replace(rt_tx *tx, rt_command *cmd) {
    rt_queue_replace *c = (rt_queue_replace *)cmd;
    rt_doc doc;
    rt_metadata was;
    const rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &was);
    if (code != RT_OK) return code;
    if (doc.version != c->version) {
        return rt_fail(tx->err, RT_E_CONFLICT, 0, "the queue has changed meanwhile");
    }
    rt_metadata now = c->like;
    now.id = was.id;
    now.jobs = was.jobs;
    if (now.json.len == 0) now.json = RT_STR("{}");
    return rt_metadata_update(tx, &doc, &now);
}

void rt_queue_replace_init(rt_queue_replace *c) {
    *c = (rt_queue_replace){.cmd = {.decide = decide_replace}};
}

static rt_code decide_delete(rt_tx *tx, rt_command *cmd) {
    rt_queue_delete *c = (rt_queue_delete *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_metadata metadata;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_tx_put_doc(tx, &doc, NULL);
    code = rt_queue_drain(tx, metadata.jobs, RT_REASON_DELETED, false);
    if (code != RT_OK) return code;
    bool rest;
    return rt_subscriptions_remove(tx, metadata.id, &rest);
}

void rt_queue_delete_init(rt_queue_delete *c) { *c = (rt_queue_delete){.cmd = {.decide = decide_delete}}; }

/* The list's record belongs to the identity of its queue, which has changed. */
static rt_code own_anew(rt_tx *tx, const rt_metadata *metadata) {
    rt_queue was;
    const rt_code code = rt_queue_load(tx, metadata->jobs, &was);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    rt_queue now = was;
    now.owner = metadata->id;
    rt_tx_put_queue(tx, &was, &now);
    return RT_OK;
}

static rt_code purge_messages(rt_tx *tx, const rt_queue_purge *c, rt_metadata *metadata) {
    const rt_code code = rt_queue_drain(tx, metadata->jobs, RT_REASON_DELETED, false);
    if (code != RT_OK) return code;
    metadata->jobs = rt_tx_new_id(tx);
    const rt_queue list = {
        .id = metadata->jobs,
        .owner = metadata->id,
        .kind = RT_QUEUE_MESSAGES,
        .name = rt_queue_label(tx->arena, c->tenant, c->queue, RT_STR_EMPTY),
    };
    if (list.name.ptr == NULL) return rt_fail(tx->err, RT_E_NOMEM, 0, "no memory for a queue's name");
    rt_tx_put_queue(tx, NULL, &list);
    return RT_OK;
}

static rt_code decide_purge(rt_tx *tx, rt_command *cmd) {
    rt_queue_purge *c = (rt_queue_purge *)cmd;
    tx->frees = true;
    rt_doc doc;
    rt_metadata metadata;
    rt_code code = rt_metadata_load(tx, c->tenant, c->queue, &doc, &metadata);
    if (code != RT_OK) return code == RT_E_ABSENT ? RT_OK : code;
    bool rest = false;
    if (c->subscriptions) {
        code = rt_subscriptions_remove(tx, metadata.id, &rest);
        if (code != RT_OK) return code;
    }
    // With a new identity those that the cursor has yet to reach are gone for every reader, and a subscriber
    // that comes back at once is a new one, which the cursor leaves alone.
    if (rest) metadata.id = rt_tx_new_id(tx);
    if (c->messages) code = purge_messages(tx, c, &metadata);
    else if (rest) code = own_anew(tx, &metadata);
    if (code != RT_OK) return code;
    return c->messages || rest ? rt_metadata_update(tx, &doc, &metadata) : RT_OK;
}

void rt_queue_purge_init(rt_queue_purge *c) { *c = (rt_queue_purge){.cmd = {.decide = decide_purge}}; }
