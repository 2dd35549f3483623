#include "store/memory/image.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MIN = 16 };

rt_image *rt_image_new(void) {
    rt_image *image = calloc(1, sizeof *image);
    if (image == NULL) return NULL;
    atomic_init(&image->refs, 1);
    image->next_id = 1;
    image->next_seq = 1;
    return image;
}

rt_image *rt_image_share(rt_image *image) {
    (void)atomic_fetch_add(&image->refs, 1);
    return image;
}

rt_image *rt_image_copy(const rt_image *from) {
    rt_image *image = rt_image_new();
    if (image == NULL) return NULL;
    image->next_id = from->next_id;
    image->next_seq = from->next_seq;
    image->tag = from->tag;
    for (int part = 0; part < RT_PART_COUNT; part++) {
        rt_image_table *table = from->tables[part];
        image->tables[part] = table;
        if (table != NULL) (void)atomic_fetch_add(&table->refs, 1);
    }
    return image;
}

static void drop_table(rt_image_table *table) {
    if (table != NULL && atomic_fetch_sub(&table->refs, 1) == 1) free(table);
}

void rt_image_drop(rt_image *image) {
    if (image == NULL || atomic_fetch_sub(&image->refs, 1) != 1) return;
    for (int part = 0; part < RT_PART_COUNT; part++) drop_table(image->tables[part]);
    free(image);
}

uint32_t rt_image_len(const rt_image *image, rt_image_part part) {
    return image->tables[part] == NULL ? 0 : image->tables[part]->len;
}

const void *rt_image_row(const rt_image *image, rt_image_part part, uint32_t at) {
    RT_ASSERT(at < rt_image_len(image, part));
    return image->tables[part]->rows[at].record;
}

uint32_t rt_image_lower(const rt_image *image, rt_image_part part, uint64_t key) {
    uint32_t low = 0;
    uint32_t high = rt_image_len(image, part);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (image->tables[part]->rows[middle].key < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

uint32_t rt_image_users(const rt_image *image, rt_id body) {
    const uint32_t len = rt_image_len(image, RT_PART_JOBS);
    uint32_t users = 0;
    for (uint32_t i = 0; i < len; i++) {
        const rt_job *job = rt_image_row(image, RT_PART_JOBS, i);
        users += job->body == body && job->state != RT_JOB_DONE;
    }
    return users;
}

static int compare_doc(const rt_doc *doc, rt_doc_kind kind, rt_str name) {
    if (doc->kind != kind) return doc->kind < kind ? -1 : 1;
    return rt_str_cmp(doc->name, name);
}

uint32_t rt_image_lower_doc(const rt_image *image, rt_doc_kind kind, rt_str name) {
    uint32_t low = 0;
    uint32_t high = rt_image_len(image, RT_PART_DOCS);
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_doc(rt_image_row(image, RT_PART_DOCS, middle), kind, name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const void *rt_image_find(const rt_image *image, rt_image_part part, uint64_t key) {
    const uint32_t at = rt_image_lower(image, part, key);
    if (at == rt_image_len(image, part) || image->tables[part]->rows[at].key != key) return NULL;
    return image->tables[part]->rows[at].record;
}

const rt_doc *rt_image_find_doc(const rt_image *image, rt_doc_kind kind, rt_str name) {
    const uint32_t at = rt_image_lower_doc(image, kind, name);
    if (at == rt_image_len(image, RT_PART_DOCS)) return NULL;
    const rt_doc *doc = rt_image_row(image, RT_PART_DOCS, at);
    return compare_doc(doc, kind, name) == 0 ? doc : NULL;
}

/* The table to write to, with room for one row more: the image's own, or a copy of the one it shares.
 * NULL: no memory. */
static rt_image_table *own_table(rt_image *image, rt_image_part part) {
    rt_image_table *table = image->tables[part];
    const uint32_t len = table == NULL ? 0 : table->len;
    if (table != NULL && atomic_load(&table->refs) == 1 && len < table->cap) return table;
    RT_ASSERT(len < UINT32_MAX / 2 - ROWS_MIN);
    const uint32_t cap = len + len / 2 + ROWS_MIN;
    rt_image_table *own = malloc(sizeof *own + cap * sizeof own->rows[0]);
    if (own == NULL) return NULL;
    atomic_init(&own->refs, 1);
    own->cap = cap;
    own->len = len;
    if (len > 0) memcpy(own->rows, table->rows, len * sizeof own->rows[0]);
    drop_table(table);
    image->tables[part] = own;
    return own;
}

/* Replaces `gone` (0 or 1) rows at `at` by `record`, or by nothing when it is NULL. */
static bool splice(rt_image *image, rt_image_part part, uint32_t at, uint32_t gone, uint64_t key,
                   const void *record) {
    const uint32_t come = record == NULL ? 0 : 1;
    if (gone == 0 && come == 0) return true;
    rt_image_table *table = own_table(image, part);
    if (table == NULL) return false;
    const uint32_t behind = table->len - at - gone;
    memmove(&table->rows[at + come], &table->rows[at + gone], behind * sizeof table->rows[0]);
    table->len = table->len + come - gone;
    if (record != NULL) {
        table->rows[at].key = key;
        table->rows[at].record = record;
    }
    return true;
}

bool rt_image_put(rt_image *image, rt_image_part part, uint64_t key, const void *record) {
    RT_ASSERT(part != RT_PART_DOCS);
    const uint32_t at = rt_image_lower(image, part, key);
    const bool there = at < rt_image_len(image, part) && image->tables[part]->rows[at].key == key;
    return splice(image, part, at, there ? 1 : 0, key, record);
}

bool rt_image_put_doc(rt_image *image, rt_doc_kind kind, rt_str name, const rt_doc *record) {
    const uint32_t at = rt_image_lower_doc(image, kind, name);
    const bool there = rt_image_find_doc(image, kind, name) != NULL;
    return splice(image, RT_PART_DOCS, at, there ? 1 : 0, (uint64_t)kind, record);
}

bool rt_image_cut_head(rt_image *image, rt_image_part part, uint32_t count) {
    RT_ASSERT(count <= rt_image_len(image, part));
    if (count == 0) return true;
    rt_image_table *table = own_table(image, part);
    if (table == NULL) return false;
    memmove(&table->rows[0], &table->rows[count], (table->len - count) * sizeof table->rows[0]);
    table->len -= count;
    return true;
}
