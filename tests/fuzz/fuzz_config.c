/* Any text as a configuration file: it is refused with words, or leaves settings that are within their
 * bounds. */
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rt_config c;
    if (rt_config_init(&c, NULL) != RT_OK) return 0;
    rt_err err = {.msg = ""};
    const rt_code code = rt_config_parse(&c, (rt_str){.ptr = (const char *)data, .len = size}, "f", &err);
    if (code != RT_OK) RT_ASSERT(strncmp(err.msg, "f:", 2) == 0);
    RT_ASSERT(c.server_readers >= 1);
    RT_ASSERT(c.server_readers <= 64);
    char host[RT_HOST_MAX];
    uint16_t port;
    // A refused address may have been stored; the caller does not go on then.
    if (code == RT_OK) RT_ASSERT(rt_config_split_listen(c.server_listen, host, &port));
    rt_address_list networks;
    RT_ASSERT(rt_config_networks(&c, &networks, &err) == RT_OK);
    rt_config_deinit(&c);
    return 0;
}
