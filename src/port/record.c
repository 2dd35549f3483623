#include "port/record.h"

const char *rt_reason_name(rt_reason reason) {
    static const char *const NAMES[RT_REASON_COUNT] = {
        [RT_REASON_NONE] = "none",
        [RT_REASON_DELIVERED] = "delivered",
        [RT_REASON_EXPIRED] = "expired",
        [RT_REASON_DELETED] = "deleted",
        [RT_REASON_UNSUBSCRIBED] = "unsubscribed",
        [RT_REASON_EXHAUSTED] = "exhausted",
        [RT_REASON_REJECTED] = "rejected",
        [RT_REASON_ADDRESS_REFUSED] = "address_refused",
        [RT_REASON_NO_MAIL_RELAY] = "no_mail_relay",
        [RT_REASON_CLAIMS_EXCEEDED] = "claims_exceeded",
        [RT_REASON_STATUS] = "status",
        [RT_REASON_TIMEOUT] = "timeout",
        [RT_REASON_CONNECT] = "connect",
        [RT_REASON_RESOLVE] = "resolve",
        [RT_REASON_TLS] = "tls",
        [RT_REASON_BROKEN] = "broken",
        [RT_REASON_LOST] = "lost",
        [RT_REASON_UNAVAILABLE] = "unavailable",
        [RT_REASON_CRASHED] = "crashed",
        [RT_REASON_NONSENSE] = "nonsense",
        [RT_REASON_FAILED] = "failed",
        [RT_REASON_CIRCUIT_OPEN] = "circuit_open",
        [RT_REASON_NO_PLUGIN] = "no_plugin",
    };
    return reason < RT_REASON_COUNT ? NAMES[reason] : "unknown";
}

const char *rt_job_state_name(rt_job_state state) {
    static const char *const NAMES[RT_JOB_STATE_COUNT] = {
        [RT_JOB_NONE] = "none", [RT_JOB_READY] = "ready",   [RT_JOB_SCHEDULED] = "scheduled",
        [RT_JOB_FREE] = "free", [RT_JOB_LEASED] = "leased", [RT_JOB_DEAD] = "dead",
        [RT_JOB_DONE] = "done",
    };
    return state < RT_JOB_STATE_COUNT ? NAMES[state] : "unknown";
}

const char *rt_event_type_name(rt_event_type type) {
    static const char *const NAMES[RT_EVENT_TYPE_COUNT] = {
        [RT_EVENT_NONE] = "none",   [RT_EVENT_ATTEMPT] = "attempt", [RT_EVENT_DELIVERED] = "delivered",
        [RT_EVENT_DEAD] = "dead",   [RT_EVENT_ENDED] = "ended",     [RT_EVENT_REDRIVEN] = "redriven",
        [RT_EVENT_MOVED] = "moved", [RT_EVENT_STARTED] = "Started", [RT_EVENT_FINISHED] = "Finished",
        [RT_EVENT_FAILED] = "Failed", [RT_EVENT_CANCELED] = "Canceled", [RT_EVENT_EXPIRED] = "Expired",
        [RT_EVENT_PROGRESS] = "progress", [RT_EVENT_RELEASED] = "released", [RT_EVENT_CIRCUIT] = "circuit",
        [RT_EVENT_CLAIMED] = "claimed",
    };
    return type < RT_EVENT_TYPE_COUNT ? NAMES[type] : "unknown";
}
