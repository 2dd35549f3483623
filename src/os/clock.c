#include "os/clock.h"

#include <time.h>

int64_t rt_wall_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); // cannot fail for a clock that every Linux has
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t rt_mono_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int64_t rt_mono_ms(void) { return (int64_t)(rt_mono_us() / 1000); }

int64_t rt_boot_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
