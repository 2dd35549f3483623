#include "store/kafka/words.h"

#include <stdarg.h>
#include <stdio.h>

#include "os/clock.h"

enum { FIRST_PAUSE_MS = 1000, PAUSE_MS_MAX = 16000, WORDS_MAX = 512 };

void rt_ks_say(const rt_ks *s, bool grave, const char *fmt, ...) {
    char text[WORDS_MAX];
    va_list args;
    if (s->cfg.say == NULL) return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->cfg.say(s->cfg.ctx, grave, rt_str_of(text));
}

void rt_ks_came(rt_ks *s) { s->wait.pause_ms = 0; }

bool rt_ks_still_waits(rt_ks *s, const char *what, rt_err *err) {
    const int64_t now = rt_mono_ms();
    if (s->wait.pause_ms == 0) {
        s->wait.pause_ms = FIRST_PAUSE_MS;
        s->wait.at_ms = now + FIRST_PAUSE_MS;
    } else if (now >= s->wait.at_ms) {
        const char *why = s->journal.why.msg;
        rt_ks_say(s, true, "%s: waits for the brokers %.100s%s%.200s", what, s->brokers,
                  why[0] != '\0' ? ": " : "", why);
        s->wait.pause_ms = s->wait.pause_ms < PAUSE_MS_MAX ? 2 * s->wait.pause_ms : PAUSE_MS_MAX;
        s->wait.at_ms = now + s->wait.pause_ms;
    }
    const bool over = atomic_load(&s->mend.stop) || (s->cfg.give_up != NULL && s->cfg.give_up(s->cfg.ctx));
    if (over) (void)rt_fail(err, RT_E_UNAVAILABLE, 0, "told to stop while it waited for %s", what);
    return !over;
}
