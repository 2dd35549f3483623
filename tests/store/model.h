/* model.h: a store as naive as can be, for comparison: plain arrays, every listing a scan and a sort. */
#ifndef RT_TESTS_STORE_MODEL_H
#define RT_TESTS_STORE_MODEL_H
#include "base/rng.h"
#include "store/kit.h"

enum { MODEL_JOBS_MAX = 400, MODEL_DOCS_MAX = 40, MODEL_QUEUES = 5, MODEL_NAME_MAX = 12, MODEL_VALUE_MAX = 300 };

typedef struct model_doc {
    bool there;
    uint64_t version;
    int64_t expires_ms;
    size_t value_len; /* bytes that follow from version and name */
} model_doc;

typedef struct model {
    rt_job jobs[MODEL_JOBS_MAX]; /* id 0: an empty place */
    model_doc docs[MODEL_DOCS_MAX]; /* the name follows from the place */
} model;

/* Makes a random change to the model and returns what it is as ops (at most MODEL_OPS_MAX), whose records
 * live in *scratch. Bodies are shared at random. */
enum { MODEL_OPS_MAX = 12 };
typedef struct model_change {
    rt_op ops[MODEL_OPS_MAX];
    size_t count;
    rt_job was[MODEL_OPS_MAX], now[MODEL_OPS_MAX];
    rt_doc doc_was, doc_now;
    char name[MODEL_NAME_MAX];
    char value[MODEL_VALUE_MAX];
} model_change;
void model_step(model *m, rt_rng *rng, rt_store *s, model_change *out);

/* Every listing, counter, body and record of the view is what the model says. */
void model_assert_same(const model *m, rt_view *v);
/* The counters alone. */
void model_assert_counts(const model *m, rt_view *v);

#endif
