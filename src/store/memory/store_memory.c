#include "store/memory/store_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/rng.h"
#include "store/memory/apply.h"
#include "store/memory/view.h"

enum { UNTOLD_MAX = 8, LOADED_MAX = 4096, LATE_POLLS_MAX = 12 };

static const uint64_t HOME = UINT64_C(1) << 48; /* of every id: the first of the homes */

struct rt_memory_disk {
    rt_store_memory_config config;
    pthread_mutex_t lock; /* guards `image`: views are opened on any thread */
    rt_image *image;      /* what is durable */
    rt_arena records;
    uint64_t next_id, next_seq; /* ahead of `image` by what was given out and is not durable */
    uint32_t nodes;
    void (*landed)(void *ctx, rt_view *before, rt_view *after); /* NULL: nobody watches */
    void *landed_ctx;
};

/* A batch that was committed and whose end was not told. */
typedef struct untold {
    uint64_t no;
    rt_image *base, *image; /* begun on, and with its changes; both NULL: nothing (more) to put on the disk */
    uint32_t polls_left;    /* polls that will tell nothing */
    bool failed;
    bool conflict; /* … because another node's batch got there */
} untold;

typedef struct node {
    rt_store store; /* first: what callers hold */
    rt_memory_disk *disk;
    bool owns_disk;
    rt_rng rng;
    rt_memory_faults faults;

    rt_image *base, *batch; /* the open batch; NULL: none */
    rt_image_view batch_view;
    uint32_t writes;
    bool broken;    /* it can only fail */
    bool fail_next; /* the next one with changes will */

    untold untold[UNTOLD_MAX]; /* oldest first */
    uint32_t untold_count;

    uint64_t salt; /* which records this batch has to load */
    uint64_t loaded[LOADED_MAX];
    uint32_t loaded_count, wanted_count; /* wanted: loaded by the next rt_store_load */
} node;

static node *node_of(rt_store *s) { return (node *)s; }
static const node *node_of_const(const rt_store *s) { return (const node *)s; }

static bool strikes(node *n, uint16_t permille) {
    return permille > 0 && rt_rng_below(&n->rng, 1000) < permille;
}

static rt_image *share_durable(rt_memory_disk *disk) {
    (void)pthread_mutex_lock(&disk->lock);
    rt_image *image = rt_image_share(disk->image);
    (void)pthread_mutex_unlock(&disk->lock);
    return image;
}

/* ---- views --------------------------------------------------------------------------------------------- */

rt_view *rt_memory_disk_view(rt_memory_disk *disk) {
    rt_image_view *view = malloc(sizeof *view);
    if (view == NULL) return NULL;
    *view = (rt_image_view){.view.ops = &RT_IMAGE_VIEW_OPS, .image = share_durable(disk), .owned = true};
    return &view->view;
}

static rt_code node_view(rt_store *s, rt_view **out, rt_err *err) {
    // Not a fault of chance: views are opened on any thread, and the generator is the engine's.
    const node *n = node_of(s);
    if (n->faults.unavailable >= 1000) return rt_fail(err, RT_E_UNAVAILABLE, 0, "store does not answer");
    rt_view *view = rt_memory_disk_view(n->disk);
    if (view == NULL) return rt_fail(err, RT_E_NOMEM, 0, "view");
    *out = view;
    return RT_OK;
}

/* Reads of the open batch: some records have to be loaded first. Which ones is a matter of their key alone,
 * so that a decision that is taken again meets the same ones. */
static rt_code fault_of_read(void *ctx, rt_image_part part, uint64_t key) {
    node *n = ctx;
    if (n->faults.again == 0) return RT_OK;
    const uint64_t mark = rt_hash_u64(n->salt ^ rt_hash_u64(key * (RT_PART_COUNT + 1) + (uint64_t)part));
    if (mark % 1000 >= n->faults.again) return RT_OK;
    for (uint32_t i = 0; i < n->loaded_count; i++) {
        if (n->loaded[i] == mark) return RT_OK;
    }
    if (n->wanted_count == LOADED_MAX) return RT_OK;
    n->loaded[n->wanted_count++] = mark;
    return RT_E_AGAIN;
}

/* ---- the open batch ------------------------------------------------------------------------------------ */

static void drop_batch(node *n) {
    rt_image_drop(n->batch);
    rt_image_drop(n->base);
    n->batch = NULL;
    n->base = NULL;
    n->writes = 0;
    n->broken = false;
    n->loaded_count = 0;
    n->wanted_count = 0;
}

/* What the next batch starts from: the last one that is on its way to the disk, or else the disk. */
static rt_image *share_latest(node *n) {
    for (uint32_t i = n->untold_count; i > 0; i--) {
        const untold *u = &n->untold[i - 1];
        if (u->image != NULL && !u->failed) return rt_image_share(u->image);
    }
    return share_durable(n->disk);
}

static bool begin(node *n, rt_err *err) {
    if (n->batch != NULL) return true;
    if (n->untold_count == UNTOLD_MAX || strikes(n, n->faults.unavailable)) {
        (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "store does not answer");
        return false;
    }
    n->base = share_latest(n);
    n->batch = rt_image_copy(n->base);
    if (n->batch == NULL) {
        drop_batch(n);
        (void)rt_fail(err, RT_E_NOMEM, 0, "batch");
        return false;
    }
    n->salt = rt_rng_next(&n->rng);
    n->batch_view.image = n->batch;
    return true;
}

static rt_view *node_batch(rt_store *s, rt_err *err) {
    node *n = node_of(s);
    return begin(n, err) ? &n->batch_view.view : NULL;
}

static rt_code node_load(rt_store *s, rt_err *err) {
    node *n = node_of(s);
    if (strikes(n, n->faults.unavailable)) return rt_fail(err, RT_E_UNAVAILABLE, 0, "store does not answer");
    n->loaded_count = n->wanted_count;
    return RT_OK;
}

static rt_code fault_of_apply(node *n, const rt_change *change, rt_err *err) {
    if (strikes(n, n->faults.conflict)) return rt_fail(err, RT_E_CONFLICT, 0, "record changed (injected)");
    const bool full = !change->frees && strikes(n, n->faults.full);
    if (full) return rt_fail(err, RT_E_FULL, 0, "store is full (injected)");
    if (n->broken || strikes(n, n->faults.broken)) {
        n->broken = true;
        return rt_fail(err, RT_E_UNAVAILABLE, 0, "connection lost (injected)");
    }
    return RT_OK;
}

static void adopt(node *n, rt_image *image, const rt_import *import) {
    rt_memory_disk *disk = n->disk;
    image->tag = import->tag;
    const uint64_t next_id = import->ids_from & (HOME - 1);
    if (next_id > disk->next_id) disk->next_id = next_id;
    if (import->seqs_from > disk->next_seq) disk->next_seq = import->seqs_from;
}

static rt_code node_apply(rt_store *s, const rt_change *change, rt_err *err) {
    node *n = node_of(s);
    if (!begin(n, err)) return RT_E_UNAVAILABLE;
    rt_code code = fault_of_apply(n, change, err);
    if (code != RT_OK) return code;
    rt_image *next = rt_image_copy(n->batch);
    if (next == NULL) return rt_fail(err, RT_E_NOMEM, 0, "change");
    code = rt_image_apply(n->batch, next, &n->disk->records, change, err);
    const uint32_t jobs_max = n->disk->config.jobs_max;
    const uint32_t jobs = rt_image_len(next, RT_PART_JOBS);
    const bool grows = jobs > rt_image_len(n->batch, RT_PART_JOBS);
    if (code == RT_OK && jobs_max > 0 && jobs > jobs_max && grows && !change->frees) {
        code = rt_fail(err, RT_E_FULL, 0, "store is full: %u jobs", jobs_max);
    }
    if (code != RT_OK) {
        rt_image_drop(next);
        return code;
    }
    rt_image_drop(n->batch);
    if (change->import != NULL) adopt(n, next, change->import);
    n->batch = next;
    n->batch_view.image = next;
    n->writes += change->ops_count;
    return RT_OK;
}

static bool node_tidy(rt_store *s, int64_t now_ms, uint32_t ops_max) {
    node *n = node_of(s);
    const rt_retention *bounds = &n->disk->config.retention;
    if (bounds->events == 0 || !begin(n, NULL)) return false;
    const uint32_t before = rt_image_len(n->batch, RT_PART_EVENTS);
    const rt_code code = rt_image_tidy(n->batch, bounds, now_ms, ops_max);
    n->writes += before - rt_image_len(n->batch, RT_PART_EVENTS);
    if (code == RT_E_NOMEM) n->broken = true;
    return code == RT_E_AGAIN;
}

static void node_abandon(rt_store *s) { drop_batch(node_of(s)); }

/* ---- the end of a batch -------------------------------------------------------------------------------- */

static void drop_untold(untold *u) {
    rt_image_drop(u->image);
    rt_image_drop(u->base);
    u->image = NULL;
    u->base = NULL;
}

/* Puts the batch on the disk, unless something else got there since it was begun. */
static void land(node *n, untold *u) {
    if (u->image == NULL || u->failed) return;
    rt_memory_disk *disk = n->disk;
    (void)pthread_mutex_lock(&disk->lock);
    rt_image *before = disk->image;
    u->failed = u->conflict = before != u->base;
    if (!u->failed) disk->image = u->image;
    (void)pthread_mutex_unlock(&disk->lock);
    if (u->failed) return;
    if (disk->landed != NULL) {
        rt_image_view was = {.view.ops = &RT_IMAGE_VIEW_OPS, .image = before};
        rt_image_view now = {.view.ops = &RT_IMAGE_VIEW_OPS, .image = u->image};
        disk->landed(disk->landed_ctx, &was.view, &now.view);
    }
    u->image = NULL; // its reference is the disk's now
    rt_image_drop(before);
    drop_untold(u);
}

static void node_commit(rt_store *s, uint64_t batch_no) {
    node *n = node_of(s);
    RT_ASSERT(n->untold_count < UNTOLD_MAX);
    untold *u = &n->untold[n->untold_count++];
    *u = (untold){.no = batch_no, .failed = n->broken || strikes(n, n->faults.failed)};
    if (n->batch != NULL && n->writes > 0) {
        u->failed = u->failed || n->fail_next;
        n->fail_next = false;
        u->base = n->base;
        u->image = n->batch;
        u->image->next_id = n->disk->next_id;
        u->image->next_seq = n->disk->next_seq;
        n->base = NULL;
        n->batch = NULL;
    }
    drop_batch(n);
    if (n->store.fd >= 0 && strikes(n, n->faults.late))
        u->polls_left = 1 + (uint32_t)rt_rng_below(&n->rng, LATE_POLLS_MAX);
    // A late batch may be on the disk long before anybody hears of it.
    if (n->untold_count == 1 && (u->polls_left == 0 || rt_rng_below(&n->rng, 2) == 0)) land(n, u);
}

static bool node_poll(rt_store *s, uint64_t *batch_no, rt_batch_end *end, rt_err *err) {
    node *n = node_of(s);
    if (n->untold_count == 0) return false;
    untold *first = &n->untold[0];
    if (first->polls_left > 0) {
        first->polls_left--;
        return false;
    }
    land(n, first);
    *batch_no = first->no;
    *end = first->conflict ? RT_BATCH_CONFLICT : first->failed ? RT_BATCH_FAILED : RT_BATCH_DURABLE;
    if (first->failed) {
        if (first->conflict) (void)rt_fail(err, RT_E_CONFLICT, 0, "another node was faster");
        else (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "batch failed (injected)");
        // What was begun on top of it has lost its ground.
        for (uint32_t i = 1; i < n->untold_count; i++) n->untold[i].failed = true;
        if (n->batch != NULL) n->broken = true;
    }
    drop_untold(first);
    n->untold_count--;
    for (uint32_t i = 0; i < n->untold_count; i++) n->untold[i] = n->untold[i + 1];
    return true;
}

uint32_t rt_store_memory_untold(const rt_store *store) { return node_of_const(store)->untold_count; }

/* ---- ids ----------------------------------------------------------------------------------------------- */

static rt_id node_new_id(rt_store *s) { return HOME | node_of(s)->disk->next_id++; }

static uint64_t node_new_seq(rt_store *s) { return node_of(s)->disk->next_seq++; }

/* ---- life ---------------------------------------------------------------------------------------------- */

rt_memory_disk *rt_memory_disk_new(const rt_store_memory_config *config) {
    rt_memory_disk *disk = calloc(1, sizeof *disk);
    if (disk == NULL) return NULL;
    disk->config = *config;
    disk->image = rt_image_new();
    if (disk->image == NULL || pthread_mutex_init(&disk->lock, NULL) != 0) {
        rt_image_drop(disk->image);
        free(disk);
        return NULL;
    }
    return disk;
}

void rt_memory_disk_free(rt_memory_disk *disk) {
    if (disk == NULL) return;
    RT_ASSERT(disk->nodes == 0);
    rt_image_drop(disk->image);
    rt_arena_deinit(&disk->records);
    (void)pthread_mutex_destroy(&disk->lock);
    free(disk);
}

static void node_close(rt_store *s) {
    node *n = node_of(s);
    // Nobody heard of these: any number of them, from the first on, may have reached the disk.
    for (uint32_t i = 0; i < n->untold_count; i++) {
        if (n->untold[i].image != NULL && rt_rng_below(&n->rng, 2) == 0) break;
        land(n, &n->untold[i]);
    }
    for (uint32_t i = 0; i < n->untold_count; i++) drop_untold(&n->untold[i]);
    drop_batch(n);
    if (n->store.fd >= 0) (void)close(n->store.fd);
    n->disk->nodes--;
    if (n->owns_disk) rt_memory_disk_free(n->disk);
    free(n);
}

static const rt_store_ops NODE_OPS = {
    .view = node_view,
    .batch = node_batch,
    .load = node_load,
    .apply = node_apply,
    .commit = node_commit,
    .poll = node_poll,
    .abandon = node_abandon,
    .new_id = node_new_id,
    .new_seq = node_new_seq,
    .tidy = node_tidy,
    .close = node_close,
};

void rt_memory_disk_watch(rt_memory_disk *disk, void (*landed)(void *ctx, rt_view *before, rt_view *after),
                          void *ctx) {
    disk->landed = landed;
    disk->landed_ctx = ctx;
}

void rt_memory_each_changed_job(const rt_view *before, const rt_view *after, rt_each_changed_job *each,
                                void *ctx) {
    rt_image_each_changed_job(before == NULL ? NULL : ((const rt_image_view *)before)->image,
                              ((const rt_image_view *)after)->image, each, ctx);
}

static node *attach(rt_memory_disk *disk, uint64_t seed) {
    node *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    const uint32_t tag = disk->image->tag != 0 ? disk->image->tag : disk->config.tag;
    n->store = (rt_store){
        .ops = &NODE_OPS, .tag = tag, .loads = disk->config.loads,
                         .sole_owner = disk->config.sole_owner, .fd = -1};
    n->disk = disk;
    n->rng = rt_rng_seeded(seed);
    n->batch_view = (rt_image_view){.view.ops = &RT_IMAGE_VIEW_OPS, .fault = fault_of_read, .fault_ctx = n};
    // Ids that nobody can have heard of are given out again, as any store does that starts.
    if (disk->nodes == 0) {
        disk->next_id = disk->image->next_id;
        disk->next_seq = disk->image->next_seq;
    }
    disk->nodes++;
    return n;
}

rt_code rt_store_memory_attach(rt_memory_disk *disk, uint64_t seed, rt_store **out, rt_err *err) {
    node *n = attach(disk, seed);
    if (n == NULL) return rt_fail(err, RT_E_NOMEM, 0, "memory store");
    // Always readable: a late end counts the polls that it lets pass.
    if (!disk->config.commit_waits) n->store.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!disk->config.commit_waits && n->store.fd < 0) {
        const int saved = errno;
        rt_store_close(&n->store);
        return rt_fail(err, RT_E_IO, saved, "eventfd");
    }
    *out = &n->store;
    return RT_OK;
}

void rt_store_memory_fail_next(rt_store *store) { node_of(store)->fail_next = true; }

void rt_store_memory_set_faults(rt_store *store, const rt_memory_faults *faults) {
    node_of(store)->faults = *faults;
}

rt_code rt_store_memory_new(const rt_store_memory_config *config, rt_store **out, rt_err *err) {
    rt_memory_disk *disk = rt_memory_disk_new(config);
    node *n = disk == NULL ? NULL : attach(disk, 0);
    if (n == NULL) {
        rt_memory_disk_free(disk);
        return rt_fail(err, RT_E_NOMEM, 0, "memory store");
    }
    n->owns_disk = true;
    *out = &n->store;
    return RT_OK;
}
