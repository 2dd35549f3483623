/* transfer.h: one attempt under way as libcurl sees it: an easy handle, what it sends, and what came back.
 *
 * Handles are used again and again: what never changes is set once, when the transfer is made. One thread
 * at a time. */
#ifndef RT_EXECUTOR_WEBHOOK_TRANSFER_H
#define RT_EXECUTOR_WEBHOOK_TRANSFER_H
#include <curl/curl.h>

#include "base/heap.h"
#include "executor/webhook/headers.h"
#include "executor/webhook/hosts.h"
#include "executor/webhook/mail.h"
#include "executor/webhook/signature.h"
#include "executor/webhook/sockets.h"
#include "executor/webhook/webhook.h"

/* What all transfers share. */
typedef struct rt_transfer_env {
    rt_webhook_config cfg; /* complete: no defaults left open */
    rt_signer *signer;
    rt_sockets *sockets;
} rt_transfer_env;

/* A mail on its way; made for each, since mails are few. */
typedef struct rt_letter {
    rt_mail mail;
    size_t sent; /* bytes of mail.message */
    struct curl_slist to[RT_MAIL_TO_MAX];
} rt_letter;

typedef struct rt_transfer {
    rt_heap_node deadline; /* monotonic ms */
    rt_host_waiter waiter;
    struct rt_transfer *next; /* in whichever list its owner has it */
    const rt_transfer_env *env;
    rt_host *host;
    CURLM *multi;          /* where it is under way */

    rt_attempt *attempt; /* owned; NULL: spare */
    CURL *easy;          /* the one that is under way: `http`, or made for a letter */
    CURL *http;
    bool under_way; /* added to `multi` */
    bool follows;   /* what `http` is set to */
    bool worn;      /* `http` has to start afresh */
    rt_headers headers;
    rt_buf signature;
    rt_letter *letter;
    int64_t began_ms; /* monotonic */

    uint32_t requests;       /* sent for this attempt: more than one with redirects, or when a connection had died */
    uint32_t tried, refused; /* addresses of this hop */
    long hop;
    char refused_address[48];
    uint64_t body_bytes, header_bytes;
    bool cut; /* the answer was longer than we read */
    rt_buf answer; /* all of it, where the attempt asks for it */
    uint32_t excerpt_len;
    char excerpt[RT_EVENT_TEXT_MAX];
    char error[CURL_ERROR_SIZE];
} rt_transfer;

/* Returns an owned spare transfer that borrows `env`. NULL: out of memory. */
rt_transfer *rt_transfer_new(const rt_transfer_env *env);
void rt_transfer_free(rt_transfer *t); /* not while under way; NULL is a no-op */

/* Makes t->easy ready for t->attempt, sent at `now_s` (Unix seconds). RT_REASON_NONE: go. Otherwise the
 * attempt has failed for that reason, t->error says why. */
rt_reason rt_transfer_prepare(rt_transfer *t, int64_t now_s);

/* Why it failed, in words for its outcome. */
void rt_transfer_say(rt_transfer *t, const char *why);

/* What came of it, once libcurl is done with it with `code`. Hands over out->answer. */
void rt_transfer_outcome(rt_transfer *t, CURLcode code, int64_t now_s, rt_outcome *out);
/* The same for one that failed with t->error before it began. */
void rt_transfer_failed(const rt_transfer *t, rt_reason reason, rt_outcome *out);

/* Lets go of the attempt: spare again. */
void rt_transfer_reset(rt_transfer *t);

/* http:, https: or mailto: where it really connects to: the attempt's URL or the relay's. */
rt_str rt_transfer_url(const rt_transfer *t);

#endif
