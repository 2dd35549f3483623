/* image.h: everything that a memory store holds at one moment.
 *
 * Six sorted tables of records and nothing derived from them: indexes, counters and body users are computed
 * by looking at all records, so that there is nothing that could be out of step. Records are never changed or
 * freed while their disk lives; a write puts another record into the table. Images share tables that did not
 * change: a snapshot is a reference, a batch copies only the tables it writes to. */
#ifndef RT_STORE_MEMORY_IMAGE_H
#define RT_STORE_MEMORY_IMAGE_H
#include <stdatomic.h>

#include "base/arena.h"
#include "port/store.h"

typedef enum rt_image_part {
    RT_PART_JOBS,
    RT_PART_QUEUES,
    RT_PART_LEASES,
    RT_PART_BODIES,
    RT_PART_EVENTS,
    RT_PART_DOCS,
    RT_PART_COUNT
} rt_image_part;

typedef struct rt_image_body {
    rt_id id;
    rt_str bytes;
} rt_image_body;

typedef struct rt_image_table {
    atomic_uint refs; /* images that hold it */
    uint32_t len, cap;
    /* Rising. `key`: id or sequence number; of documents, which are ordered by kind and name: their kind. */
    struct {
        uint64_t key;
        const void *record;
    } rows[];
} rt_image_table;

typedef struct rt_image {
    atomic_uint refs;
    rt_image_table *tables[RT_PART_COUNT]; /* NULL: empty */
    uint64_t next_id, next_seq;
    uint32_t tag; /* that was imported; 0: none was */
} rt_image;

/* Each returns an image with one reference. NULL: out of memory. */
rt_image *rt_image_new(void);
rt_image *rt_image_copy(const rt_image *from);
rt_image *rt_image_share(rt_image *image); /* one reference more */
void rt_image_drop(rt_image *image);       /* one reference less; NULL is a no-op */

uint32_t rt_image_len(const rt_image *image, rt_image_part part);
/* The record in row `at` < len. */
const void *rt_image_row(const rt_image *image, rt_image_part part, uint32_t at);
/* First row whose key (documents: kind and name) is not below the one asked for. */
uint32_t rt_image_lower(const rt_image *image, rt_image_part part, uint64_t key);
uint32_t rt_image_lower_doc(const rt_image *image, rt_doc_kind kind, rt_str name);
/* NULL: absent. */
const void *rt_image_find(const rt_image *image, rt_image_part part, uint64_t key);
const rt_doc *rt_image_find_doc(const rt_image *image, rt_doc_kind kind, rt_str name);

/* Jobs that are not done and name the body. */
uint32_t rt_image_users(const rt_image *image, rt_id body);

/* Writes to an image that nobody else looks at. `record` NULL removes; it must live as long as the disk.
 * False: out of memory, the image is as before. */
bool rt_image_put(rt_image *image, rt_image_part part, uint64_t key, const void *record);
bool rt_image_put_doc(rt_image *image, rt_doc_kind kind, rt_str name, const rt_doc *record);
/* Removes the first `count` rows of a part. */
bool rt_image_cut_head(rt_image *image, rt_image_part part, uint32_t count);

#endif
