/* clock.h: the real clocks. For the threads at the edge; the engine is handed the time. Any thread. */
#ifndef RT_OS_CLOCK_H
#define RT_OS_CLOCK_H
#include <stdint.h>

int64_t rt_wall_ms(void); /* Unix time; may jump */
int64_t rt_mono_ms(void); /* these two never go back; for timeouts and durations */
uint64_t rt_mono_us(void);
int64_t rt_boot_ms(void); /* never goes back either, and goes on while the machine sleeps */

#endif
