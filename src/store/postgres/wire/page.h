/* page.h: reading straight from the database: one record, or a listing. A page is fetched whole before its
 * reader is told, so that the reader may read on over the same connection. One thread at a time. */
#ifndef RT_STORE_POSTGRES_WIRE_PAGE_H
#define RT_STORE_POSTGRES_WIRE_PAGE_H
#include "store/postgres/wire/pipe.h"

typedef struct rt_pg_reader {
    rt_pg_pipe *pipe; /* lent, as is the arena */
    rt_pg_args args;
    rt_arena *arena; /* for strings that are lent until the view is closed */
    int64_t within_ms;
} rt_pg_reader;

rt_code rt_pg_page_jobs(rt_pg_reader *r, const rt_job_range *range, rt_each_job *each, void *ctx);
rt_code rt_pg_page_docs(rt_pg_reader *r, rt_doc_kind kind, rt_str prefix, rt_str after, rt_each_doc *each,
                        void *ctx);
rt_code rt_pg_page_queues(rt_pg_reader *r, rt_id after, rt_each_queue *each, void *ctx);
rt_code rt_pg_page_events(rt_pg_reader *r, uint64_t after_seq, rt_each_event *each, void *ctx);
rt_code rt_pg_page_expiries(rt_pg_reader *r, int64_t until_ms, rt_each_expiry *each, void *ctx);
rt_code rt_pg_page_leases(rt_pg_reader *r, rt_id after, rt_each_lease *each, void *ctx);
rt_code rt_pg_page_bodies(rt_pg_reader *r, rt_id after, rt_each_body *each, void *ctx);
rt_code rt_pg_page_wakes(rt_pg_reader *r, rt_id after_queue, rt_each_wake *each, void *ctx);
/* The record of one key; documents: `kind` and `name`. RT_E_ABSENT. */
rt_code rt_pg_get(rt_pg_reader *r, rt_pg_part part, uint64_t key, rt_doc_kind kind, rt_str name,
                  void *record);

/* Parameters of a listing; of jobs: returns its statement. */
int rt_pg_jobs_args(rt_pg_args *a, const rt_job_range *range, uint32_t limit);
void rt_pg_docs_args(rt_pg_args *a, rt_doc_kind kind, rt_str prefix, rt_str after, uint32_t limit);

#endif
