/* mail.h: an attempt as an Internet mail (RFC 5322). Pure; any thread.
 *
 * Everything that comes from outside is checked (addresses) or written so that it cannot end its line
 * (subject, names, ids), so no attempt can add a header or a recipient. */
#ifndef RT_EXECUTOR_WEBHOOK_MAIL_H
#define RT_EXECUTOR_WEBHOOK_MAIL_H
#include "port/executor.h"

enum { RT_MAIL_TO_MAX = 10, RT_MAIL_ADDRESS_MAX = 254 };

typedef struct rt_mail {
    char from[RT_MAIL_ADDRESS_MAX + 1]; /* envelope; NUL-terminated, without <> */
    char to[RT_MAIL_TO_MAX][RT_MAIL_ADDRESS_MAX + 1];
    uint32_t to_count;
    rt_buf message; /* headers and body, lines end in CRLF; dots are not doubled */
} rt_mail;

/* Recipients (and, if the attempt has none, the subject) come from the attempt's mailto: URL (RFC 6068).
 * `sender` stands in when the attempt names none. RT_OK: free with rt_mail_deinit. RT_E_INVALID: an
 * address is none. */
RT_MUST_USE rt_code rt_mail_compose(const rt_attempt *attempt, rt_str sender, int64_t now_s, rt_mail *out,
                                    rt_err *err);
void rt_mail_deinit(rt_mail *mail);

#endif
