/* chart.h: numbers as columns of block characters, within 80 places of a terminal. */
#ifndef RT_CLI_CHART_H
#define RT_CLI_CHART_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { RT_CHART_GROUPS_MAX = 4 };

typedef struct rt_chart {
    const uint64_t *values; /* where there are more than columns, the largest of each bundle is drawn */
    const uint8_t *groups;  /* values[i]'s group, below RT_CHART_GROUPS_MAX, never falling; NULL: all in 0 */
    size_t count;           /* >= 1 */
    const char *top_label;  /* the largest value, in at most 10 places */
    const char *const *group_names; /* the legend; NULL: none */
    bool colour;
} rt_chart;

/* Borrows everything for the call. */
void rt_chart_print(FILE *out, const rt_chart *chart);

/* The escape of a group's colour; rt_chart_colour_end ends it. */
const char *rt_chart_colour(size_t group);
const char *rt_chart_colour_end(void);

#endif
