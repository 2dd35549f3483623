#include "chart.h"

#include "base/code.h"

enum {
    COLUMNS_MAX = 64,
    COLUMN_WIDTH_MAX = 4, // the last place of a column wider than 1 is the gap to the next
    ROWS = 8,
    EIGHTHS = 8, // of a row
    LABEL_PLACES = 10,
    LINE_PLACES = 80
};

const char *rt_chart_colour(size_t group) {
    static const char *const ESCAPES[RT_CHART_GROUPS_MAX] = {"\033[36m", "\033[33m", "\033[32m", "\033[35m"};
    RT_ASSERT(group < RT_CHART_GROUPS_MAX);
    return ESCAPES[group];
}

const char *rt_chart_colour_end(void) { return "\033[0m"; }

typedef struct column {
    uint64_t value;
    uint8_t group; // of its largest value
} column;

static uint8_t group_of(const rt_chart *chart, size_t i) {
    return chart->groups == NULL ? 0 : chart->groups[i];
}

/* Returns the number of columns. */
static size_t bundle(const rt_chart *chart, column columns[COLUMNS_MAX], uint64_t *largest) {
    const size_t used = chart->count < COLUMNS_MAX ? chart->count : COLUMNS_MAX;
    *largest = 0;
    for (size_t c = 0; c < used; c++) {
        const size_t first = c * chart->count / used, end = (c + 1) * chart->count / used;
        columns[c] = (column){.value = chart->values[first], .group = group_of(chart, first)};
        for (size_t i = first; i < end; i++) {
            if (chart->values[i] < columns[c].value) continue;
            columns[c] = (column){.value = chart->values[i], .group = group_of(chart, i)};
        }
        if (columns[c].value > *largest) *largest = columns[c].value;
    }
    return used;
}

/* Eighths of a row, at least one for what is not nothing. */
static uint32_t height_of(uint64_t value, uint64_t largest) {
    if (value == 0) return 0;
    const double share = (double)value / (double)largest;
    const uint32_t height = (uint32_t)(share * ROWS * EIGHTHS + 0.5);
    return height == 0 ? 1 : height;
}

static void repeat(FILE *out, const char *text, size_t times) {
    for (size_t i = 0; i < times; i++) (void)fputs(text, out);
}

/* What of a column of `height` is seen in `row` (0 is the lowest). */
static void print_cell(FILE *out, const rt_chart *chart, const column *c, uint32_t height, uint32_t row,
                       size_t width) {
    static const char *const BLOCKS[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const uint32_t below = row * EIGHTHS;
    const uint32_t seen = height <= below ? 0 : height - below < EIGHTHS ? height - below : EIGHTHS;
    const bool coloured = chart->colour && seen > 0;
    if (coloured) (void)fputs(rt_chart_colour(c->group), out);
    repeat(out, BLOCKS[seen], width > 1 ? width - 1 : 1);
    if (coloured) (void)fputs(rt_chart_colour_end(), out);
    if (width > 1) (void)fputc(' ', out);
}

static void print_axis(FILE *out, const rt_chart *chart, size_t places) {
    char last[24];
    const int last_places = snprintf(last, sizeof last, "%zu", chart->count);
    (void)fprintf(out, "%*s └", LABEL_PLACES, "0");
    repeat(out, "─", places);
    (void)fprintf(out, "\n%*s  1", LABEL_PLACES, "");
    if (places > (size_t)last_places + 1) {
        (void)fprintf(out, "%*s", (int)places - 1, last);
    }
    (void)fputc('\n', out);
}

/* "■ immediate 1-3  ■ backoff 4-15": the groups that there are, with their first and last. */
static void print_legend(FILE *out, const rt_chart *chart) {
    if (chart->group_names == NULL) return;
    int used = 0;
    for (size_t first = 0, end; first < chart->count; first = end) {
        const uint8_t group = group_of(chart, first);
        end = first + 1;
        while (end < chart->count && group_of(chart, end) == group) end++;
        char text[80];
        const int len =
            end == first + 1
                ? snprintf(text, sizeof text, "%s %zu", chart->group_names[group], end)
                : snprintf(text, sizeof text, "%s %zu-%zu", chart->group_names[group], first + 1, end);
        const int places = len + 4; // two blanks before, the square and a blank
        if (used > 0 && used + places > LINE_PLACES) {
            (void)fputc('\n', out);
            used = 0;
        }
        used += places;
        (void)fprintf(out, "  %s■%s %s", chart->colour ? rt_chart_colour(group) : "",
                      chart->colour ? rt_chart_colour_end() : "", text);
    }
    (void)fputc('\n', out);
}

void rt_chart_print(FILE *out, const rt_chart *chart) {
    RT_ASSERT(chart->count >= 1);
    column columns[COLUMNS_MAX];
    uint64_t largest;
    const size_t used = bundle(chart, columns, &largest);
    const size_t fitting = COLUMNS_MAX / used;
    const size_t width = fitting < COLUMN_WIDTH_MAX ? fitting : COLUMN_WIDTH_MAX;
    for (uint32_t above = ROWS; above > 0; above--) {
        const bool top = above == ROWS;
        (void)fprintf(out, "%*s %s", LABEL_PLACES, top ? chart->top_label : "", top ? "┤" : "│");
        for (size_t c = 0; c < used; c++) {
            print_cell(out, chart, &columns[c], height_of(columns[c].value, largest), above - 1, width);
        }
        (void)fputc('\n', out);
    }
    print_axis(out, chart, used * width);
    print_legend(out, chart);
}
