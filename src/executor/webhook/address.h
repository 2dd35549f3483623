/* address.h: which network addresses a delivery may reach.
 *
 * Without an operator's word only globally routed unicast addresses may be reached: loopback, private,
 * link-local, carrier-grade NAT, metadata services, multicast, documentation, benchmark and reserved
 * ranges are refused. Source: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its
 * successors). Pure: no I/O, no allocation, any thread. */
#ifndef RT_EXECUTOR_WEBHOOK_ADDRESS_H
#define RT_EXECUTOR_WEBHOOK_ADDRESS_H
#include <sys/socket.h>

#include "base/str.h"

enum { RT_NETWORKS_MAX = 64 };

/* IPv6 in network order; IPv4 as ::ffff:a.b.c.d, so that the mapped spelling is no way around a rule for
 * IPv4. */
typedef struct rt_address {
    unsigned char bytes[16];
} rt_address;

typedef struct rt_network {
    rt_address base; /* bits past `bits` are zero */
    uint8_t bits;    /* 0..128; an IPv4 network has 96 + its prefix length */
} rt_network;

/* Networks that are allowed although they would be refused. All zero: none. */
typedef struct rt_address_list {
    rt_network networks[RT_NETWORKS_MAX];
    uint32_t count;
} rt_address_list;

/* The setting delivery.allow_networks: "127.0.0.0/8, ::1, 10.1.2.0/24"; commas or blanks between them. No
 * prefix length means that one address. RT_E_INVALID: names the part that is no network; *out is then
 * unspecified. */
RT_MUST_USE rt_code rt_address_list_parse(rt_str text, rt_address_list *out, rt_err *err);

/* Any spelling that the resolver takes for an IPv4 address ("127.0.0.1", "127.1", "0x7f000001",
 * "2130706433"), or an IPv6 address with or without brackets and zone. False: not an address, so a name or
 * nonsense. */
bool rt_address_parse(rt_str text, rt_address *out);
/* False: neither IPv4 nor IPv6. */
bool rt_address_from_sockaddr(const struct sockaddr *sa, rt_address *out);

bool rt_address_allowed(const rt_address_list *allow, const rt_address *address);

/* `host` as it stands in a URL. True: it is an address, not a name, and deliveries to it would be refused.
 * Names are judged by what they resolve to when a connection is opened. */
bool rt_address_literal_refused(const rt_address_list *allow, rt_str host);

#endif
