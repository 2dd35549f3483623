#include "executor/webhook/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

typedef struct range4 {
    uint32_t base;
    uint8_t bits;
} range4;

/* Everything in IPv4 that is not globally routed unicast, and two services that clouds answer under public
 * addresses or ones that look harmless. */
static const range4 REFUSED4[] = {
    {0x00000000, 8},  // 0.0.0.0/8: "this network"; 0.0.0.0 reaches loopback on Linux
    {0x0a000000, 8},  // 10.0.0.0/8: private
    {0x64400000, 10}, // 100.64.0.0/10: carrier-grade NAT; holds a metadata service too (100.100.100.200)
    {0x7f000000, 8},  // 127.0.0.0/8: loopback
    {0xa83f8110, 32}, // 168.63.129.16: Azure's host agent, reachable from each of its machines
    {0xa9fe0000, 16}, // 169.254.0.0/16: link-local; 169.254.169.254 hands out credentials
    {0xac100000, 12}, // 172.16.0.0/12: private
    {0xc0000000, 24}, // 192.0.0.0/24: protocol assignments; 192.0.0.192 is a metadata service
    {0xc0000200, 24}, // 192.0.2.0/24: documentation
    {0xc0586300, 24}, // 192.88.99.0/24: 6to4 relays, withdrawn
    {0xc0a80000, 16}, // 192.168.0.0/16: private
    {0xc6120000, 15}, // 198.18.0.0/15: benchmarks
    {0xc6336400, 24}, // 198.51.100.0/24: documentation
    {0xcb007100, 24}, // 203.0.113.0/24: documentation
    {0xe0000000, 4},  // 224.0.0.0/4: multicast
    {0xf0000000, 4},  // 240.0.0.0/4: reserved, and broadcast
};

/* Only 2000::/3 is global unicast; these are its exceptions. */
static const rt_network GLOBAL6 = {{{0x20}}, 3};
static const rt_network REFUSED6[] = {
    {{{0x20, 0x01}}, 23},             // 2001::/23: protocol assignments, with Teredo, ORCHID and benchmarks
    {{{0x20, 0x01, 0x0d, 0xb8}}, 32}, // 2001:db8::/32: documentation
    {{{0x20, 0x02}}, 16},             // 2002::/16: 6to4, which tunnels to whatever IPv4 address it holds
    {{{0x3f, 0xff}}, 20},             // 3fff::/20: documentation
};
static const rt_network MAPPED = {{{[10] = 0xff, [11] = 0xff}}, 96};              // ::ffff:0:0/96
static const rt_network NAT64 = {{{0x00, 0x64, [2] = 0xff, [3] = 0x9b}}, 96};     // 64:ff9b::/96

static void clear_past(rt_address *a, uint8_t bits) {
    for (unsigned i = 0; i < 128; i++) {
        if (i >= bits) a->bytes[i / 8] = (unsigned char)(a->bytes[i / 8] & ~(0x80U >> (i % 8)));
    }
}

static bool network_has(const rt_network *n, const rt_address *a) {
    const size_t whole = n->bits / 8;
    if (memcmp(n->base.bytes, a->bytes, whole) != 0) return false;
    const unsigned rest = n->bits % 8;
    if (rest == 0) return true;
    const unsigned mask = 0xffU & ~(0xffU >> rest);
    return (a->bytes[whole] & mask) == (n->base.bytes[whole] & mask);
}

static rt_address mapped(const void *four_bytes) {
    rt_address a = MAPPED.base;
    memcpy(a.bytes + 12, four_bytes, 4);
    return a;
}

static bool global4(const rt_address *a) {
    uint32_t v;
    memcpy(&v, a->bytes + 12, 4);
    v = ntohl(v);
    for (size_t i = 0; i < sizeof REFUSED4 / sizeof REFUSED4[0]; i++) {
        if (((v ^ REFUSED4[i].base) >> (32 - REFUSED4[i].bits)) == 0) return false;
    }
    return true;
}

static bool global6(const rt_address *a) {
    if (!network_has(&GLOBAL6, a)) return false;
    for (size_t i = 0; i < sizeof REFUSED6 / sizeof REFUSED6[0]; i++) {
        if (network_has(&REFUSED6[i], a)) return false;
    }
    return true;
}

static bool listed(const rt_address_list *allow, const rt_address *a) {
    const bool is4 = network_has(&MAPPED, a);
    for (uint32_t i = 0; i < allow->count; i++) {
        const rt_network *n = &allow->networks[i];
        // "::/0" opens IPv6; it does not open IPv4 because we happen to write that as ::ffff:a.b.c.d.
        if (is4 != (n->bits >= 96 && network_has(&MAPPED, &n->base))) continue;
        if (network_has(n, a)) return true;
    }
    return false;
}

bool rt_address_allowed(const rt_address_list *allow, const rt_address *address) {
    if (listed(allow, address)) return true;
    if (network_has(&MAPPED, address)) return global4(address);
    if (!network_has(&NAT64, address)) return global6(address);
    // Where there is only IPv6, every IPv4 host shows as 64:ff9b::a.b.c.d, so that host decides.
    const rt_address inner = mapped(address->bytes + 12);
    return listed(allow, &inner) || global4(&inner);
}

bool rt_address_from_sockaddr(const struct sockaddr *sa, rt_address *out) {
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, sa, sizeof in);
        *out = mapped(&in.sin_addr);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, sa, sizeof in6);
        memcpy(out->bytes, &in6.sin6_addr, sizeof out->bytes);
        return true;
    }
    return false;
}

bool rt_address_parse(rt_str text, rt_address *out) {
    char spelled[64];
    if (text.len > 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']') {
        text = (rt_str){.ptr = text.ptr + 1, .len = text.len - 2};
    }
    rt_str zone;
    (void)rt_str_cut(text, '%', &text, &zone);
    // "127.0.0.1." is the same host to a resolver.
    if (text.len > 1 && text.ptr[text.len - 1] == '.') text.len--;
    if (text.len == 0 || text.len >= sizeof spelled) return false;
    memcpy(spelled, text.ptr, text.len);
    spelled[text.len] = '\0';
    if (strlen(spelled) != text.len) return false;
    if (strchr(spelled, ':') != NULL) return inet_pton(AF_INET6, spelled, out->bytes) == 1;
    if (spelled[strspn(spelled, "0123456789abcdefABCDEFxX.")] != '\0') return false;
    struct in_addr in;
    if (inet_aton(spelled, &in) == 0) return false;
    *out = mapped(&in);
    return true;
}

bool rt_address_literal_refused(const rt_address_list *allow, rt_str host) {
    rt_address a;
    return rt_address_parse(host, &a) && !rt_address_allowed(allow, &a);
}

/* "ADDRESS" or "ADDRESS/BITS", the address in its usual spelling: a setting is no place for 0x7f.1. */
static bool network_parse(rt_str text, rt_network *out) {
    rt_str address, bits_text;
    char spelled[64];
    const bool has_bits = rt_str_cut(text, '/', &address, &bits_text);
    if (address.len == 0 || address.len >= sizeof spelled) return false;
    memcpy(spelled, address.ptr, address.len);
    spelled[address.len] = '\0';
    struct in_addr in;
    int64_t bits_max = 128;
    if (inet_pton(AF_INET, spelled, &in) == 1) {
        out->base = mapped(&in);
        bits_max = 32;
    } else if (inet_pton(AF_INET6, spelled, out->base.bytes) != 1) {
        return false;
    }
    int64_t bits = bits_max;
    if (has_bits && !rt_str_to_i64(bits_text, &bits)) return false;
    if (bits < 0 || bits > bits_max) return false;
    out->bits = (uint8_t)(bits + 128 - bits_max);
    clear_past(&out->base, out->bits);
    return true;
}

rt_code rt_address_list_parse(rt_str text, rt_address_list *out, rt_err *err) {
    *out = (rt_address_list){0};
    size_t at = 0;
    while (at < text.len) {
        size_t end = at;
        while (end < text.len && text.ptr[end] != ',' && text.ptr[end] != ' ' && text.ptr[end] != '\t') end++;
        const rt_str part = {.ptr = text.ptr + at, .len = end - at};
        at = end + 1;
        if (part.len == 0) continue;
        if (out->count == RT_NETWORKS_MAX) {
            return rt_fail(err, RT_E_TOO_LARGE, 0, "more than %d networks", RT_NETWORKS_MAX);
        }
        if (!network_parse(part, &out->networks[out->count])) {
            return rt_fail(err, RT_E_INVALID, 0, "\"%.*s\" is no network: write ADDRESS or ADDRESS/BITS",
                           RT_STR_ARG(part));
        }
        out->count++;
    }
    return RT_OK;
}
