#include "executor/webhook/transfer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/webhook/answer.h"

enum {
    BUFFER_BYTES = 4096,        /* libcurl's receive buffer, one a transfer: answers are small and transfers many */
    HEADER_BYTES_MAX = 1 << 17, /* of an answer; an endless header must not fill memory */
    IDLE_SECONDS_MAX = 60       /* a connection idle for longer is not used again */
};

static bool is_mail(const rt_transfer *t) {
    const rt_str scheme = RT_STR("mailto:");
    const rt_str url = t->attempt->url;
    return url.len >= scheme.len && rt_str_eq_nocase((rt_str){url.ptr, scheme.len}, scheme);
}

rt_str rt_transfer_url(const rt_transfer *t) {
    return is_mail(t) ? rt_str_of(t->env->cfg.mail_relay) : t->attempt->url;
}

/* ---- what libcurl calls -------------------------------------------------------------------------------- */

/* The most that is read of an answer. */
static uint64_t answer_max(const rt_transfer *t) {
    return t->attempt->answer_max > 0 ? t->attempt->answer_max : RT_WEBHOOK_ANSWER_MAX;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *ctx) {
    rt_transfer *t = ctx;
    const size_t len = one * count;
    const size_t room = t->env->cfg.excerpt_bytes - t->excerpt_len;
    const size_t kept = len < room ? len : room;
    memcpy(t->excerpt + t->excerpt_len, bytes, kept);
    t->excerpt_len += (uint32_t)kept;
    t->body_bytes += len;
    t->cut = t->body_bytes > answer_max(t);
    if (t->cut) return 0;
    if (t->attempt->answer_max > 0) rt_buf_add(&t->answer, (rt_str){.ptr = bytes, .len = len});
    return len;
}

static size_t on_header(char *bytes, size_t one, size_t count, void *ctx) {
    (void)bytes;
    rt_transfer *t = ctx;
    t->header_bytes += one * count;
    return t->header_bytes > HEADER_BYTES_MAX ? 0 : one * count;
}

static size_t on_read(char *out, size_t one, size_t count, void *ctx) {
    rt_letter *l = ctx;
    const size_t left = l->mail.message.len - l->sent;
    const size_t len = left < one * count ? left : one * count;
    memcpy(out, l->mail.message.ptr + l->sent, len);
    l->sent += len;
    return len;
}

static curl_socket_t on_open(void *ctx, curlsocktype purpose, struct curl_sockaddr *to) {
    (void)purpose;
    rt_transfer *t = ctx;
    long hop = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_COUNT, &hop);
    if (hop != t->hop) {
        t->hop = hop;
        t->tried = 0;
        t->refused = 0;
    }
    rt_address a = {0};
    if (!rt_address_from_sockaddr(&to->addr, &a) || !rt_address_allowed(&t->env->cfg.allow, &a)) {
        const bool is4 = to->family == AF_INET;
        t->refused++;
        if (inet_ntop(is4 ? AF_INET : AF_INET6, is4 ? a.bytes + 12 : a.bytes, t->refused_address,
                      sizeof t->refused_address) == NULL) {
            t->refused_address[0] = '\0';
        }
        return CURL_SOCKET_BAD;
    }
    t->tried++;
    return rt_sockets_open(t->env->sockets, to);
}

static int on_request(void *ctx, char *to, char *from, int to_port, int from_port) {
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    rt_transfer *t = ctx;
    t->requests++;
    return CURL_PREREQFUNC_OK;
}

/* ---- making one ---------------------------------------------------------------------------------------- */

/* Sets an option once; a failure is remembered in `ok` and judged at the end. */
#define SET(easy, option, value) (ok = curl_easy_setopt(easy, option, value) == CURLE_OK && ok)

/* What holds for HTTP and mail alike. */
static bool set_common(rt_transfer *t, CURL *easy) {
    const rt_webhook_config *cfg = &t->env->cfg;
    bool ok = true;
    SET(easy, CURLOPT_PRIVATE, (void *)t);
    SET(easy, CURLOPT_ERRORBUFFER, t->error);
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    // Otherwise a transfer that times out while its name is being resolved waits for the resolver, and all
    // others with it.
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    SET(easy, CURLOPT_PROXY, "");
    SET(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)cfg->connect_ms);
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (cfg->ca_file != NULL) SET(easy, CURLOPT_CAINFO, cfg->ca_file);
    SET(easy, CURLOPT_CLOSESOCKETFUNCTION, rt_sockets_on_close);
    SET(easy, CURLOPT_CLOSESOCKETDATA, t->env->sockets);
    return ok;
}

static bool set_http(rt_transfer *t) {
    CURL *easy = t->http;
    bool ok = set_common(t, easy);
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_MAXREDIRS, (long)RT_WEBHOOK_REDIRECTS_MAX);
    SET(easy, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    SET(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS_MAX);
    SET(easy, CURLOPT_USERAGENT, t->env->cfg.user_agent);
    SET(easy, CURLOPT_POST, 1L);
    SET(easy, CURLOPT_WRITEFUNCTION, on_body);
    SET(easy, CURLOPT_WRITEDATA, t);
    SET(easy, CURLOPT_HEADERFUNCTION, on_header);
    SET(easy, CURLOPT_HEADERDATA, t);
    SET(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(easy, CURLOPT_OPENSOCKETDATA, t);
    SET(easy, CURLOPT_PREREQFUNCTION, on_request);
    SET(easy, CURLOPT_PREREQDATA, t);
    return ok;
}

/* libcurl sends again when a kept connection turns out to be closed, five times at most; but it counts
 * over the whole life of a handle, until curl_easy_reset. So a handle that sent more than once starts
 * afresh. */
static void renew_http(rt_transfer *t) {
    curl_easy_reset(t->http);
    t->follows = false;
    t->worn = !set_http(t);
}

rt_transfer *rt_transfer_new(const rt_transfer_env *env) {
    rt_transfer *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    t->env = env;
    t->http = curl_easy_init();
    if (t->http == NULL || !set_http(t)) {
        rt_transfer_free(t);
        return NULL;
    }
    return t;
}

void rt_transfer_free(rt_transfer *t) {
    if (t == NULL) return;
    rt_transfer_reset(t);
    curl_easy_cleanup(t->http);
    rt_headers_deinit(&t->headers);
    rt_buf_deinit(&t->signature);
    rt_buf_deinit(&t->answer);
    free(t);
}

void rt_transfer_reset(rt_transfer *t) {
    RT_ASSERT(!t->under_way);
    if (t->letter != NULL) {
        curl_easy_cleanup(t->easy);
        rt_mail_deinit(&t->letter->mail);
        free(t->letter);
        t->letter = NULL;
    }
    if (t->requests > 1) t->worn = true;
    t->requests = 0;
    rt_attempt_free(t->attempt);
    t->attempt = NULL;
    t->easy = NULL;
    t->host = NULL;
    t->next = NULL;
    t->tried = t->refused = 0;
    t->hop = 0;
    t->body_bytes = t->header_bytes = 0;
    t->cut = false;
    rt_buf_deinit(&t->answer);
    t->excerpt_len = 0;
    t->error[0] = '\0';
}

/* ---- making it ready ----------------------------------------------------------------------------------- */

void rt_transfer_say(rt_transfer *t, const char *why) { (void)snprintf(t->error, sizeof t->error, "%s", why); }

static rt_reason fail_with(rt_transfer *t, rt_reason reason, const char *why) {
    rt_transfer_say(t, why);
    return reason;
}

/* False: a secret cannot sign. Better not sent than sent unsigned to somebody who checks. */
static bool add_signature(rt_transfer *t, rt_str timestamp) {
    const rt_attempt *a = t->attempt;
    rt_buf_clear(&t->signature);
    for (size_t i = 0; i < RT_SECRETS_MAX; i++) {
        if (a->secrets[i].len == 0) continue;
        if (t->signature.len > 0) rt_buf_add_char(&t->signature, ' ');
        if (!rt_signer_add(t->env->signer, a->secrets[i], a->message_id, timestamp, a->body, &t->signature)) return false;
    }
    if (t->signature.len > 0) rt_headers_add(&t->headers, RT_STR("webhook-signature"), rt_buf_str(&t->signature));
    return !t->signature.failed;
}

static void add_number(rt_headers *h, rt_str name, uint64_t number) {
    char text[24];
    const int len = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    rt_headers_add(h, name, (rt_str){.ptr = text, .len = (size_t)len});
}

static rt_reason prepare_http(rt_transfer *t, int64_t now_s) {
    const rt_attempt *a = t->attempt;
    char timestamp[24];
    const int timestamp_len = snprintf(timestamp, sizeof timestamp, "%lld", (long long)now_s);
    const rt_str sent_at = {.ptr = timestamp, .len = (size_t)timestamp_len};
    if (t->worn) renew_http(t);
    if (t->worn) return fail_with(t, RT_REASON_BROKEN, "out of memory");
    t->easy = t->http;
    rt_headers_clear(&t->headers);
    rt_headers_add_users(&t->headers, a->headers, a->content_type);
    rt_headers_add(&t->headers, RT_STR("webhook-id"), a->message_id);
    rt_headers_add(&t->headers, RT_STR("webhook-timestamp"), sent_at);
    add_number(&t->headers, RT_STR("webhook-attempt"), a->number);
    if (!add_signature(t, sent_at)) return fail_with(t, RT_REASON_BROKEN, "a signing secret is not base64");

    bool ok = true;
    struct curl_slist *list = rt_headers_list(&t->headers);
    SET(t->easy, CURLOPT_URL, a->url.ptr);
    SET(t->easy, CURLOPT_HTTPHEADER, list);
    SET(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)a->body.len);
    SET(t->easy, CURLOPT_POSTFIELDS, a->body.ptr);
    if (t->follows != a->follow_redirects) {
        SET(t->easy, CURLOPT_FOLLOWLOCATION, a->follow_redirects ? 1L : 0L);
        t->follows = a->follow_redirects;
    }
    return ok && list != NULL ? RT_REASON_NONE : fail_with(t, RT_REASON_BROKEN, "out of memory");
}

static bool set_mail(rt_transfer *t, CURL *easy) {
    const rt_webhook_config *cfg = &t->env->cfg;
    rt_letter *l = t->letter;
    bool ok = set_common(t, easy);
    SET(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    SET(easy, CURLOPT_URL, cfg->mail_relay);
    if (cfg->mail_user != NULL) {
        SET(easy, CURLOPT_USERNAME, cfg->mail_user);
        SET(easy, CURLOPT_PASSWORD, cfg->mail_password != NULL ? cfg->mail_password : "");
        SET(easy, CURLOPT_USE_SSL, (long)CURLUSESSL_ALL);
    } else if (strncmp(cfg->mail_relay, "smtps:", 6) != 0) {
        // Whoever can alter the connection can also hide STARTTLS, so to insist on its certificate would only
        // break relays next door; smtps:// or a login make it strict.
        SET(easy, CURLOPT_USE_SSL, (long)CURLUSESSL_TRY);
        SET(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        SET(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }
    SET(easy, CURLOPT_MAIL_FROM, l->mail.from);
    for (uint32_t i = 0; i < l->mail.to_count; i++) {
        l->to[i].data = l->mail.to[i];
        l->to[i].next = i + 1 < l->mail.to_count ? &l->to[i + 1] : NULL;
    }
    SET(easy, CURLOPT_MAIL_RCPT, l->to);
    SET(easy, CURLOPT_UPLOAD, 1L);
    SET(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)l->mail.message.len);
    SET(easy, CURLOPT_READFUNCTION, on_read);
    SET(easy, CURLOPT_READDATA, l);
    SET(easy, CURLOPT_WRITEFUNCTION, on_body);
    SET(easy, CURLOPT_WRITEDATA, t);
    return ok;
}

static rt_reason prepare_mail(rt_transfer *t, int64_t now_s) {
    rt_err err = {0};
    t->letter = calloc(1, sizeof *t->letter);
    if (t->letter == NULL) return fail_with(t, RT_REASON_BROKEN, "out of memory");
    const rt_str sender = rt_str_of(t->env->cfg.mail_from);
    if (rt_mail_compose(t->attempt, sender, now_s, &t->letter->mail, &err) != RT_OK) {
        return fail_with(t, RT_REASON_BROKEN, err.msg);
    }
    t->easy = curl_easy_init();
    if (t->easy == NULL || !set_mail(t, t->easy)) return fail_with(t, RT_REASON_BROKEN, "out of memory");
    return RT_REASON_NONE;
}

rt_reason rt_transfer_prepare(rt_transfer *t, int64_t now_s) {
    RT_ASSERT(t->attempt != NULL);
    RT_ASSERT(!t->under_way);
    if (!is_mail(t)) return prepare_http(t, now_s);
    if (t->env->cfg.mail_relay != NULL) return prepare_mail(t, now_s);
    return fail_with(t, RT_REASON_NO_MAIL_RELAY, "no mail relay is configured (mail.relay)");
}

/* ---- what came of it ----------------------------------------------------------------------------------- */

static rt_reason reason_of_failure(const rt_transfer *t, CURLcode code) {
    // Not a switch: the enum has a hundred members, and all that is not named here is a broken conversation.
    if (code == CURLE_OPERATION_TIMEDOUT) return RT_REASON_TIMEOUT;
    if (code == CURLE_COULDNT_RESOLVE_HOST) return RT_REASON_RESOLVE;
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_INTERFACE_FAILED) {
        return t->refused > 0 && t->tried == 0 ? RT_REASON_ADDRESS_REFUSED : RT_REASON_CONNECT;
    }
    static const CURLcode tls[] = {
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_USE_SSL_FAILED,        CURLE_SSL_CIPHER,
        CURLE_SSL_CERTPROBLEM,   CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ISSUER_ERROR,
    };
    for (size_t i = 0; i < sizeof tls / sizeof tls[0]; i++) {
        if (code == tls[i]) return RT_REASON_TLS;
    }
    return RT_REASON_BROKEN;
}

/* Does the answer count, although libcurl may not be happy with it? */
static bool has_answer(const rt_transfer *t, CURLcode code, long status) {
    if (status < 100 || status > 999) return false;
    if (code == CURLE_OK) return true;
    // Of an answer that is wanted whole, a part is none.
    if (t->cut) return t->attempt->answer_max == 0;
    // A redirect that is not followed any further is an answer like any other.
    const bool stopped = code == CURLE_TOO_MANY_REDIRECTS || code == CURLE_UNSUPPORTED_PROTOCOL ||
                         code == CURLE_URL_MALFORMAT;
    return stopped && status >= 300 && status < 400;
}

static void set_text(rt_outcome *out, rt_str raw, bool more) {
    out->text_len = (uint16_t)rt_excerpt_clean(raw, more, out->text, sizeof out->text);
}

/* Field by field: to clear the room for a text as well would cost more than all the rest. */
static void outcome_init(const rt_transfer *t, rt_reason reason, rt_outcome *out) {
    out->job = t->attempt->job;
    out->token = t->attempt->token;
    out->reason = reason;
    out->status = 0;
    out->took_ms = 0;
    out->retry_after_ms = -1;
    out->text_len = 0;
    out->answer = NULL;
    out->answer_len = 0;
}

void rt_transfer_failed(const rt_transfer *t, rt_reason reason, rt_outcome *out) {
    outcome_init(t, reason, out);
    set_text(out, rt_str_of(t->error), false);
}

static void answered(rt_transfer *t, long status, int64_t now_s, rt_outcome *out) {
    out->status = (uint16_t)status;
    const bool whole = t->attempt->answer_max > 0;
    // A whole answer may hold what was made, keys for example, and the text goes into the history.
    if (!whole || status >= 300) {
        set_text(out, (rt_str){t->excerpt, t->excerpt_len}, t->body_bytes > t->excerpt_len);
    }
    if (whole) {
        out->answer = t->answer.ptr;
        out->answer_len = (uint32_t)t->answer.len;
        t->answer = (rt_buf){0};
    }
    struct curl_header *after;
    // Asked for only where somebody may wait for it.
    if (status >= 300 && curl_easy_header(t->easy, "Retry-After", 0, CURLH_HEADER, -1, &after) == CURLHE_OK) {
        out->retry_after_ms = rt_retry_after_ms(rt_str_of(after->value), now_s);
    }
}

void rt_transfer_outcome(rt_transfer *t, CURLcode code, int64_t now_s, rt_outcome *out) {
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    const bool mail = t->letter != NULL;
    outcome_init(t, RT_REASON_STATUS, out);
    if (mail && code == CURLE_OK) {
        out->status = 200;
    } else if (!mail && t->answer.failed) {
        out->reason = RT_REASON_BROKEN;
        set_text(out, RT_STR("out of memory"), false);
    } else if (!mail && has_answer(t, code, status)) {
        answered(t, status, now_s, out);
    } else {
        // The relay's 5xx is its last word (RFC 5321, 4.2.1); as a status of HTTP that is a 4xx.
        const bool for_good = mail && status >= 500 && status < 600;
        out->reason = for_good ? RT_REASON_STATUS : reason_of_failure(t, code);
        out->status = for_good ? 400 : 0;
        const char *why = t->error[0] != '\0' ? t->error : curl_easy_strerror(code);
        char text[CURL_ERROR_SIZE];
        if (out->reason == RT_REASON_ADDRESS_REFUSED) {
            (void)snprintf(text, sizeof text, "%s is in a network that deliveries may not reach "
                           "(delivery.allow_networks opens it)", t->refused_address);
            why = text;
        } else if (t->cut) {
            (void)snprintf(text, sizeof text, "the answer is longer than %llu bytes",
                           (unsigned long long)answer_max(t));
            why = text;
        }
        set_text(out, rt_str_of(why), false);
    }
}
