#include "executor/webhook/hosts.h"

#include <stdlib.h>
#include <string.h>

#include "base/code.h"
#include "base/id.h"

struct rt_host {
    uint64_t key;
    uint32_t under_way;
    rt_host_waiter *first, *last;
};

uint64_t rt_host_key(rt_str url) {
    rt_str scheme, rest, userinfo;
    char lower[320];
    (void)rt_str_cut(url, '/', &scheme, &rest);
    if (rest.len > 0 && rest.ptr[0] == '/') rest = (rt_str){.ptr = rest.ptr + 1, .len = rest.len - 1};
    size_t end = 0;
    while (end < rest.len && strchr("/?#", rest.ptr[end]) == NULL) end++;
    rest.len = end;
    while (rt_str_cut(rest, '@', &userinfo, &rest)) continue;
    rest = userinfo; // what stands behind the last '@', or all of it
    size_t len = 0;
    for (size_t i = 0; i < rest.len && len < sizeof lower; i++) {
        const char c = rest.ptr[i];
        lower[len++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    const uint64_t key = rt_hash_str((rt_str){lower, len}) ^ rt_hash_str(scheme);
    return key == 0 ? 1 : key;
}

bool rt_hosts_enter(rt_hosts *hosts, rt_str url, rt_host_waiter *waiter, rt_host **host) {
    *host = NULL;
    if (hosts->limit == 0) return true;
    const uint64_t key = rt_host_key(url);
    rt_host *h = rt_map_get(&hosts->map, key);
    if (h == NULL) {
        h = malloc(sizeof *h);
        if (h == NULL) return true;
        *h = (rt_host){.key = key};
        if (!rt_map_put(&hosts->map, key, h)) {
            free(h);
            return true;
        }
    }
    *host = h;
    if (h->under_way < hosts->limit) {
        h->under_way++;
        return true;
    }
    *waiter = (rt_host_waiter){.prev = h->last, .waits = true};
    if (h->last != NULL) h->last->next = waiter;
    else h->first = waiter;
    h->last = waiter;
    return false;
}

static void unlink_waiter(rt_host *h, rt_host_waiter *waiter) {
    RT_ASSERT(waiter->waits);
    if (waiter->prev != NULL) waiter->prev->next = waiter->next;
    else h->first = waiter->next;
    if (waiter->next != NULL) waiter->next->prev = waiter->prev;
    else h->last = waiter->prev;
    *waiter = (rt_host_waiter){0};
}

rt_host_waiter *rt_hosts_leave(rt_hosts *hosts, rt_host *host) {
    if (host == NULL) return NULL;
    RT_ASSERT(host->under_way > 0);
    rt_host_waiter *next = host->first;
    if (next != NULL) {
        unlink_waiter(host, next);
        return next;
    }
    if (--host->under_way == 0) {
        (void)rt_map_remove(&hosts->map, host->key);
        free(host);
    }
    return NULL;
}

void rt_hosts_give_up(rt_hosts *hosts, rt_host *host, rt_host_waiter *waiter) {
    RT_ASSERT(hosts->limit > 0);
    unlink_waiter(host, waiter);
}

void rt_hosts_deinit(rt_hosts *hosts) {
    RT_ASSERT(hosts->map.count == 0);
    rt_map_deinit(&hosts->map);
}
