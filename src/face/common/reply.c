#include "face/common/reply.h"

#include <stdlib.h>

#include "face/common/problem.h"
#include "json/tree.h"

void rt_reply_json(rt_exchange *x, unsigned status, json_t *json) {
    rt_buf b = {0};
    if (json != NULL) rt_json_write(&b, json); // its reals are as short as they can be
    char *text = json == NULL || !b.failed ? NULL : json_dumps(json, JSON_ENCODE_ANY); // very deep
    json_decref(json);
    if (json != NULL && !b.failed) {
        rt_exchange_reply_buf(x, status, "application/json", &b);
        return;
    }
    rt_buf_deinit(&b);
    if (text == NULL) rt_problem(x, 503, "Out of memory.");
    else rt_exchange_reply(x, status, "application/json", rt_str_of(text));
    free(text);
}
