#include "engine/messages/notice.h"

#include <inttypes.h>
#include <string.h>

static void write_message(rt_buf *out, const rt_job *delivery, rt_str body, const rt_subscription *s) {
    rt_buf_addf(out, "{\"ttl\": %" PRIu32 ", \"body\": ", delivery->ttl_s);
    rt_buf_add(out, body);
    if (delivery->delay_s > 0) rt_buf_addf(out, ", \"delay\": %" PRIu16, delivery->delay_s);
    // A queue's name has no character that JSON would escape (letters, digits, '_', '-', '.').
    rt_buf_add(out, RT_STR(", \"Message_Type\": \"Notification\", \"queue_name\": \""));
    rt_buf_add(out, rt_queue_title(s->queue_name));
    rt_buf_add(out, RT_STR("\"}"));
}

void rt_notice_write(rt_buf *out, const rt_job *delivery, rt_str body, const rt_subscription *s) {
    const rt_str mark = RT_STR("\"$zaqar_message$\"");
    if (s->post_data.len == 0 || rt_str_starts(s->uri, RT_STR("mailto:"))) {
        write_message(out, delivery, body, s);
        return;
    }
    rt_str rest = s->post_data;
    for (;;) {
        const char *at = memmem(rest.ptr, rest.len, mark.ptr, mark.len);
        if (at == NULL) break;
        const size_t before = (size_t)(at - rest.ptr);
        rt_buf_add(out, (rt_str){.ptr = rest.ptr, .len = before});
        write_message(out, delivery, body, s);
        rest = (rt_str){.ptr = at + mark.len, .len = rest.len - before - mark.len};
    }
    rt_buf_add(out, rest);
}
