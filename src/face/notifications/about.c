#include "face/notifications/about.h"

bool rt_about_topics(const rt_exchange *x) {
    return rt_str_starts(rt_exchange_path(x), RT_STR("/v2/topics"));
}

rt_str rt_about_path(const rt_exchange *x) {
    enum { SLASHES = 3 }; // of "/v2/queues/q"
    const rt_str path = rt_exchange_path(x);
    size_t len = 0, slashes = 0;
    while (len < path.len && (path.ptr[len] != '/' || ++slashes <= SLASHES)) len++;
    return (rt_str){.ptr = path.ptr, .len = len};
}
