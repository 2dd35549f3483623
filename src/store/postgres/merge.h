/* merge.h: listings of the open batch as its view tells them: what the batch wrote is laid over what was
 * fetched, whenever they are read. RT_E_AGAIN: the reader wants more than was fetched, and the next load
 * brings it. */
#ifndef RT_STORE_POSTGRES_MERGE_H
#define RT_STORE_POSTGRES_MERGE_H
#include "store/postgres/inside.h"

rt_code rt_pg_batch_jobs(rt_view *v, const rt_job_range *range, rt_each_job *each, void *ctx);
rt_code rt_pg_batch_docs(rt_view *v, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                         void *ctx);
rt_code rt_pg_batch_expiries(rt_view *v, int64_t until_ms, rt_each_expiry *each, void *ctx);

#endif
