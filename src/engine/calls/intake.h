/* intake.h: records of a log that somebody else keeps (a partition of a Kafka topic) taken over as calls, exactly once.
 *
 * How far a log has been taken over, its offset, is a document that is written by the change that schedules the calls. So
 * neither a crash nor a lost answer can make calls twice or leave a record out; and who thinks that the log is still his
 * while another has gone on with it is refused. */
#ifndef RT_ENGINE_CALLS_INTAKE_H
#define RT_ENGINE_CALLS_INTAKE_H
#include "engine/calls/call.h"

enum { RT_INTAKE_RECORDS_MAX = 512 };

typedef struct rt_intake_record {
    rt_call_item item; /* type is not empty */
    bool aside;        /* nothing becomes of it: the offset moves past it */
    rt_code refused;   /* out, with RT_E_INVALID: why it cannot be a call; RT_OK: it can */
} rt_intake_record;

/* Takes over all records or none.
 * RT_E_INVALID: some can never be calls: `refused` says how many, and each of them why (RT_E_ABSENT: no such event type;
 * RT_E_TOO_LARGE; RT_E_FENCED: its key is known for another payload). Put them aside and ask again.
 * RT_E_FENCED: the offset is not `from`: somebody else has gone on with this log. RT_E_TOO_LARGE: ask with fewer. */
typedef struct rt_intake {
    rt_command cmd;
    rt_str tenant;
    rt_str log;        /* its name, 1..RT_DOC_NAME_MAX bytes */
    int64_t from;      /* the offset that this rests on; -1: there is none yet */
    int64_t to;        /* the offset behind the last record; >= 0. May be before `from`: the log was made anew */
    rt_intake_record *records;
    uint32_t count;    /* 1..RT_INTAKE_RECORDS_MAX */
    uint32_t refused;  /* out */
    uint32_t existed;  /* out: how many were known by their key */
} rt_intake;
void rt_intake_init(rt_intake *c);

/* Up to where `log` has been taken over; -1: nothing of it yet. */
rt_code rt_intake_offset(rt_view *v, rt_str log, int64_t *offset);

#endif
