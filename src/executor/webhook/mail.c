#include "executor/webhook/mail.h"

#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/hex.h"
#include "executor/webhook/answer.h"

enum {
    LINE_MAX_BYTES = 998,  /* RFC 5322, 2.1.1 */
    TEXT_MAX = 512,        /* of a subject or a name */
    WORD_BYTES = 42,       /* of text in one encoded word of at most 75 columns (RFC 2047, 2) */
    BASE64_LINE_BYTES = 57 /* 76 columns (RFC 2045, 6.8) */
};

/* ---- addresses ----------------------------------------------------------------------------------------- */

/* One "@", and nothing that means anything to the mail's syntax. Stricter than the RFC, as mail servers
 * are. */
static bool address_ok(rt_str s) {
    size_t at_signs = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (c <= 0x20 || c >= 0x7f || strchr("<>()[],;:\\\"", c) != NULL) return false;
        if (c == '@') at_signs++;
    }
    return at_signs == 1 && s.len >= 3 && s.len <= RT_MAIL_ADDRESS_MAX && s.ptr[0] != '@' && s.ptr[s.len - 1] != '@';
}

static bool address_set(char out[RT_MAIL_ADDRESS_MAX + 1], rt_str s) {
    if (!address_ok(s)) return false;
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return true;
}

static rt_code recipients(rt_mail *m, rt_str list, rt_err *err) {
    while (list.len > 0) {
        rt_str part;
        char plain[RT_MAIL_ADDRESS_MAX + 2];
        (void)rt_str_cut(list, ',', &part, &list);
        if (m->to_count == RT_MAIL_TO_MAX) {
            return rt_fail(err, RT_E_INVALID, 0, "more than %d recipients", RT_MAIL_TO_MAX);
        }
        const rt_str address = {.ptr = plain, .len = rt_hex_unescape(part, false, plain, sizeof plain)};
        if (!address_set(m->to[m->to_count], address)) {
            return rt_fail(err, RT_E_INVALID, 0, "\"%.*s\" is no mail address", RT_STR_ARG(part));
        }
        m->to_count++;
    }
    if (m->to_count == 0) return rt_fail(err, RT_E_INVALID, 0, "no recipient");
    return RT_OK;
}

/* "a@b" or "Name <a@b>". */
static rt_code sender_of(rt_mail *m, rt_str from, rt_str *name, rt_err *err) {
    rt_str before, behind, address = rt_str_trim(from);
    *name = RT_STR_EMPTY;
    if (rt_str_cut(from, '<', &before, &behind)) {
        (void)rt_str_cut(behind, '>', &address, &behind);
        *name = rt_str_trim(before);
        if (name->len >= 2 && name->ptr[0] == '"' && name->ptr[name->len - 1] == '"') {
            *name = (rt_str){.ptr = name->ptr + 1, .len = name->len - 2};
        }
    }
    if (address_set(m->from, address)) return RT_OK;
    return rt_fail(err, RT_E_INVALID, 0, "the sender \"%.*s\" is no mail address", RT_STR_ARG(from));
}

/* ---- headers ------------------------------------------------------------------------------------------- */

static bool is_plain(rt_str s, const char *but_not) {
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < 0x20 || s.ptr[i] >= 0x7f || strchr(but_not, s.ptr[i]) != NULL) return false;
    }
    return true;
}

static void add_base64(rt_buf *b, const char *bytes, size_t len) {
    char text[RT_BASE64_LEN(BASE64_LINE_BYTES)];
    RT_ASSERT(len <= BASE64_LINE_BYTES);
    rt_buf_add(b, (rt_str){.ptr = text, .len = rt_base64_encode((rt_str){bytes, len}, text)});
}

/* Text from outside as a header's text: as it is, or in encoded words (RFC 2047) where it holds anything
 * special. */
static void add_text(rt_buf *b, rt_str text, const char *special) {
    char clean[TEXT_MAX];
    const size_t len = rt_excerpt_clean(text, false, clean, sizeof clean);
    if (is_plain((rt_str){clean, len}, special)) {
        rt_buf_add(b, (rt_str){clean, len});
        return;
    }
    for (size_t at = 0; at < len;) {
        size_t end = len - at > WORD_BYTES ? at + WORD_BYTES : len;
        // Each word holds whole characters: step back to where one begins.
        while (end < len && ((unsigned char)clean[end] & 0xc0) == 0x80) end--;
        rt_buf_add(b, at == 0 ? RT_STR("=?UTF-8?B?") : RT_STR("\r\n =?UTF-8?B?"));
        add_base64(b, clean + at, end - at);
        rt_buf_add(b, RT_STR("?="));
        at = end;
    }
}

static void add_date(rt_buf *b, int64_t now_s) {
    // Not strftime's %a and %b: those speak the locale's language.
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t at = (time_t)now_s;
    struct tm t;
    if (gmtime_r(&at, &t) == NULL) return;
    rt_buf_addf(b, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
                t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* The message's id is the same in each attempt, so that a receiver can tell a repeated mail. */
static void add_message_id(rt_buf *b, rt_str id, const char *from) {
    rt_buf_add(b, RT_STR("Message-ID: <"));
    for (size_t i = 0; i < id.len && i < TEXT_MAX; i++) {
        const char c = id.ptr[i];
        const bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        rt_buf_add_char(b, alnum || c == '_' ? c : '-');
    }
    rt_buf_addf(b, "@%s>\r\n", strchr(from, '@') + 1);
}

static void add_headers(rt_mail *m, rt_str name, rt_str subject, rt_str id, int64_t now_s) {
    rt_buf *b = &m->message;
    rt_buf_add(b, RT_STR("From: "));
    if (name.len > 0) {
        add_text(b, name, "()<>[]:;@\\,.\"=");
        rt_buf_add_char(b, ' ');
    }
    rt_buf_addf(b, "<%s>\r\nTo: ", m->from);
    for (uint32_t i = 0; i < m->to_count; i++) rt_buf_addf(b, "%s<%s>", i == 0 ? "" : ",\r\n ", m->to[i]);
    rt_buf_add(b, RT_STR("\r\nSubject: "));
    // "=" alone would do no harm, but "=?" begins an encoded word.
    add_text(b, subject, "=");
    rt_buf_add(b, RT_STR("\r\n"));
    add_date(b, now_s);
    add_message_id(b, id, m->from);
    // RFC 3834: so that nobody's holiday notice answers.
    rt_buf_add(b, RT_STR("Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"));
}

/* ---- body ---------------------------------------------------------------------------------------------- */

/* May it be sent as it is? Mail carries ASCII in lines of bounded length. */
static bool body_is_plain(rt_str body) {
    size_t column = 0;
    for (size_t i = 0; i < body.len; i++) {
        const char c = body.ptr[i];
        if (c == '\n') column = 0;
        else if ((c < 0x20 && c != '\t') || c >= 0x7f || ++column > LINE_MAX_BYTES) return false;
    }
    return true;
}

static void add_body(rt_buf *b, rt_str body) {
    if (body_is_plain(body)) {
        rt_buf_add(b, RT_STR("Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"));
        while (body.len > 0) {
            rt_str line;
            (void)rt_str_cut(body, '\n', &line, &body);
            rt_buf_add(b, line);
            rt_buf_add(b, RT_STR("\r\n"));
        }
        return;
    }
    rt_buf_add(b, RT_STR("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n"));
    for (size_t at = 0; at < body.len; at += BASE64_LINE_BYTES) {
        const size_t left = body.len - at;
        add_base64(b, body.ptr + at, left < BASE64_LINE_BYTES ? left : BASE64_LINE_BYTES);
        rt_buf_add(b, RT_STR("\r\n"));
    }
}

/* The subject of "mailto:…?subject=…"; `room` holds it. */
static rt_str subject_of(rt_str query, char room[TEXT_MAX]) {
    while (query.len > 0) {
        rt_str field, name, value;
        (void)rt_str_cut(query, '&', &field, &query);
        if (rt_str_cut(field, '=', &name, &value) && rt_str_eq_nocase(name, RT_STR("subject"))) {
            return (rt_str){.ptr = room, .len = rt_hex_unescape(value, false, room, TEXT_MAX)};
        }
    }
    return RT_STR("Notification");
}

rt_code rt_mail_compose(const rt_attempt *attempt, rt_str sender, int64_t now_s, rt_mail *out, rt_err *err) {
    rt_str scheme, target, path, query, name;
    char subject_room[TEXT_MAX];
    *out = (rt_mail){0};
    (void)rt_str_cut(attempt->url, ':', &scheme, &target);
    (void)rt_str_cut(target, '?', &path, &query);
    rt_code code = recipients(out, path, err);
    if (code != RT_OK) return code;
    code = sender_of(out, attempt->from.len > 0 ? attempt->from : sender, &name, err);
    if (code != RT_OK) return code;
    const rt_str subject = attempt->subject.len > 0 ? attempt->subject : subject_of(query, subject_room);
    add_headers(out, name, subject, attempt->message_id, now_s);
    add_body(&out->message, attempt->body);
    if (out->message.failed) {
        rt_mail_deinit(out);
        return rt_fail(err, RT_E_NOMEM, 0, "out of memory");
    }
    return RT_OK;
}

void rt_mail_deinit(rt_mail *mail) { rt_buf_deinit(&mail->message); }
