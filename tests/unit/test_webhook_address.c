#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "executor/webhook/address.h"

static rt_address_list list_of(const char *text) {
    rt_address_list list;
    rt_err err;
    assert_int_equal(rt_address_list_parse(rt_str_of(text), &list, &err), RT_OK);
    return list;
}

static bool allowed(const char *allow, const char *text) {
    const rt_address_list list = list_of(allow);
    rt_address a;
    if (!rt_address_parse(rt_str_of(text), &a)) fail_msg("%s is no address", text);
    return rt_address_allowed(&list, &a);
}

/* The first and the last of each range that is refused, and their neighbours outside where those are
 * public. */
static void address__special_ranges_are_refused_to_their_edges(void **state) {
    (void)state;
    static const struct {
        const char *below, *first, *last, *above; /* NULL: another refused range begins there */
    } rows[] = {
        {NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
        {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
        {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
        {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
        {"168.63.129.15", "168.63.129.16", "168.63.129.16", "168.63.129.17"},
        {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
        {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
        {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
        {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
        {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
        {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
        {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
        {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
        {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
        {"223.255.255.255", "224.0.0.0", "239.255.255.255", NULL},
        {NULL, "240.0.0.0", "255.255.255.255", NULL},
        {NULL, "::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2000::"},
        {"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
        {"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
         "2001:db9::"},
        {"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2003::"},
        {"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
        {"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (allowed("", rows[i].first)) fail_msg("%s is allowed", rows[i].first);
        if (allowed("", rows[i].last)) fail_msg("%s is allowed", rows[i].last);
        if (rows[i].below != NULL && !allowed("", rows[i].below)) fail_msg("%s is refused", rows[i].below);
        if (rows[i].above != NULL && !allowed("", rows[i].above)) fail_msg("%s is refused", rows[i].above);
    }
}

static void address__known_dangers_are_refused(void **state) {
    (void)state;
    static const char *const rows[] = {
        "169.254.169.254",      // metadata of most clouds
        "100.100.100.200",      // Alibaba's
        "192.0.0.192",          // Oracle's
        "fd00:ec2::254",        // Amazon's, IPv6
        "::1",
        "fe80::1",              // link-local
        "fc00::1",              // unique local
        "fec0::1",              // site-local, withdrawn
        "ff02::1",              // multicast
        "::ffff:127.0.0.1",     // IPv4 mapped
        "::ffff:a9fe:a9fe",     // the same for 169.254.169.254
        "::127.0.0.1",          // IPv4 compatible
        "::8.8.8.8",            // even of a public address: nothing answers there
        "64:ff9b::127.0.0.1",   // NAT64
        "64:ff9b::10.1.2.3",
        "64:ff9b:1::8.8.8.8",   // NAT64, local use
        "2002:7f00:1::",        // 6to4 of 127.0.0.1
        "2001:0:53aa:64c::1",   // Teredo
        "100::1",               // discard
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (allowed("", rows[i])) fail_msg("%s is allowed", rows[i]);
    }
}

static void address__public_ones_are_allowed(void **state) {
    (void)state;
    static const char *const rows[] = {
        "8.8.8.8", "1.1.1.1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001::200e",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!allowed("", rows[i])) fail_msg("%s is refused", rows[i]);
    }
}

static void address__the_setting_opens_networks(void **state) {
    (void)state;
    static const struct {
        const char *allow, *address;
        bool want;
    } rows[] = {
        {"127.0.0.0/8", "127.0.0.1", true},
        {"127.0.0.0/8", "::ffff:127.0.0.1", true},
        {"127.0.0.0/8", "64:ff9b::127.0.0.1", true},
        {"127.0.0.0/8", "::1", false},
        {"127.0.0.0/8", "128.0.0.1", true},
        {"127.0.0.0/8", "10.0.0.1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"127.0.0.1/8", "127.200.0.1", true},
        {"10.1.2.0/23", "10.1.3.255", true},
        {"10.1.2.0/23", "10.1.4.0", false},
        {"0.0.0.0/0", "169.254.169.254", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "fe80::1", true},
        {"::/0", "127.0.0.1", false},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe80::1", false},
        {"::1, 127.0.0.0/8,,10.0.0.0/8\t192.168.0.0/16", "192.168.255.255", true},
        {"::1, 127.0.0.0/8,,10.0.0.0/8\t192.168.0.0/16", "::1", true},
        {"::1, 127.0.0.0/8,,10.0.0.0/8\t192.168.0.0/16", "172.16.0.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (allowed(rows[i].allow, rows[i].address) != rows[i].want) {
            fail_msg("allow %s: %s", rows[i].allow, rows[i].address);
        }
    }
}

static void address_list__nonsense_is_refused(void **state) {
    (void)state;
    static const char *const rows[] = {
        "localhost", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "127.0.0.1/x", "::1/129", "127.1", "0x7f000001",
        "10.0.0.0/8;11.0.0.0/8", "/8", "300.0.0.1", "1.2.3.4/8/8",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rt_address_list list;
        rt_err err;
        if (rt_address_list_parse(rt_str_of(rows[i]), &list, &err) != RT_E_INVALID) fail_msg("%s passed", rows[i]);
    }
}

static void address_list__is_bounded(void **state) {
    (void)state;
    char text[(RT_NETWORKS_MAX + 1) * 3 + 1];
    rt_address_list list;
    rt_err err;
    for (size_t i = 0; i <= RT_NETWORKS_MAX; i++) (void)snprintf(text + 3 * i, 4, "::,");
    assert_int_equal(rt_address_list_parse((rt_str){text, (size_t)RT_NETWORKS_MAX * 3}, &list, &err), RT_OK);
    assert_int_equal(list.count, RT_NETWORKS_MAX);
    assert_int_equal(rt_address_list_parse(rt_str_of(text), &list, &err), RT_E_TOO_LARGE);
}

static void address__literals_in_urls_are_recognised(void **state) {
    (void)state;
    static const struct {
        const char *host;
        bool refused;
    } rows[] = {
        {"127.0.0.1", true},  {"127.1", true},       {"0x7f.1", true},         {"0x7f000001", true},
        {"017700000001", true}, {"2130706433", true}, {"127.0.0.1.", true},    {"[::1]", true},
        {"::1", true},        {"[::ffff:127.0.0.1]", true}, {"[fe80::1%25eth0]", true}, {"169.254.169.254", true},
        {"8.8.8.8", false},   {"134744072", false},  {"[2606:4700:4700::1111]", false},
        {"localhost", false}, {"example.com", false}, {"", false},             {"127.0.0.1.example.com", false},
        {"face.de", false},   {"256.256.256.256", false}, {"[::1", false},
    };
    const rt_address_list none = {0};
    const rt_address_list loopback = list_of("127.0.0.0/8");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rt_address_literal_refused(&none, rt_str_of(rows[i].host)) != rows[i].refused) fail_msg("%s", rows[i].host);
    }
    assert_false(rt_address_literal_refused(&loopback, RT_STR("127.1")));
    assert_true(rt_address_literal_refused(&loopback, RT_STR("10.0.0.1")));
}

static void address__sockaddrs_are_read(void **state) {
    (void)state;
    rt_address a, want;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a010203)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = {.s6_addr = {0xfe, 0x80, [15] = 1}}};
    const struct sockaddr local = {.sa_family = AF_UNIX};
    assert_true(rt_address_from_sockaddr((struct sockaddr *)&in, &a));
    assert_true(rt_address_parse(RT_STR("10.1.2.3"), &want));
    assert_memory_equal(&a, &want, sizeof a);
    assert_true(rt_address_from_sockaddr((struct sockaddr *)&in6, &a));
    assert_true(rt_address_parse(RT_STR("fe80::1"), &want));
    assert_memory_equal(&a, &want, sizeof a);
    assert_false(rt_address_from_sockaddr(&local, &a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address__special_ranges_are_refused_to_their_edges),
        cmocka_unit_test(address__known_dangers_are_refused),
        cmocka_unit_test(address__public_ones_are_allowed),
        cmocka_unit_test(address__the_setting_opens_networks),
        cmocka_unit_test(address_list__nonsense_is_refused),
        cmocka_unit_test(address_list__is_bounded),
        cmocka_unit_test(address__literals_in_urls_are_recognised),
        cmocka_unit_test(address__sockaddrs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
