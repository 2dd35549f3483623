/* view.h: reading an image: every listing is computed by looking at all records. */
#ifndef RT_STORE_MEMORY_VIEW_H
#define RT_STORE_MEMORY_VIEW_H
#include "store/memory/image.h"
#include "store/memory/store_memory.h"

/* Asked before each read of a record (listings of jobs and documents: part RT_PART_COUNT) with a number that
 * tells it from others; answers RT_OK, or the fault that the read ends with. */
typedef rt_code rt_image_fault(void *ctx, rt_image_part part, uint64_t key);

typedef struct rt_image_view {
    rt_view view; /* first: the view that callers hold */
    rt_image *image;
    rt_image_fault *fault; /* NULL: none */
    void *fault_ctx;
    bool owned; /* made with malloc, holds a reference to `image`: close gives both back */
} rt_image_view;

/* See rt_memory_each_changed_job. */
void rt_image_each_changed_job(const rt_image *before, const rt_image *after, rt_each_changed_job *each,
                               void *ctx);

extern const rt_view_ops RT_IMAGE_VIEW_OPS;

#endif
