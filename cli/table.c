#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CELL_BYTES = 512, COLUMNS_MAX = 16 };

bool rt_colour(void) {
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0');
}

/* The escape for a state or an event: "delivered" green, "dead" red, …; "" without colours. */
static const char *colour_of(const char *word) {
    static const struct {
        const char *word, *escape;
    } COLOURS[] = {
        {"delivered", "\033[32m"}, {"done", "\033[32m"},      {"dead", "\033[31m"},
        {"attempt", "\033[33m"},   {"scheduled", "\033[33m"}, {"ready", "\033[36m"},
        {"Started", "\033[36m"},   {"Finished", "\033[32m"},  {"Failed", "\033[31m"},
        {"Canceled", "\033[2m"},   {"Expired", "\033[33m"},
        {"PENDING", "\033[33m"},   {"ACTIVE", "\033[32m"},    {"ERROR", "\033[31m"},
        {"redriven", "\033[36m"},  {"ended", "\033[2m"},      {"leased", "\033[35m"},
    };
    if (!rt_colour()) return "";
    for (size_t i = 0; i < sizeof COLOURS / sizeof COLOURS[0]; i++) {
        if (strcmp(word, COLOURS[i].word) == 0) return COLOURS[i].escape;
    }
    return "";
}

static const char *colour_end(void) { return rt_colour() ? "\033[0m" : ""; }

/* What a terminal shows of a UTF-8 text: one place a character is near enough. */
static int places(const char *text) {
    int n = 0;
    for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void cut(char *text, int width) {
    if (width <= 0 || places(text) <= width) return;
    int n = 0;
    char *at = text;
    for (; *at != '\0' && n < width - 1; n++) {
        at++;
        while (((unsigned char)*at & 0xc0) == 0x80) at++;
    }
    (void)snprintf(at, CELL_BYTES - (size_t)(at - text), "…");
}

/* Control characters would move the cursor: shown as blanks. */
static void cell(const json_t *value, int width_max, char *out) {
    if (json_is_string(value)) (void)snprintf(out, CELL_BYTES, "%s", json_string_value(value));
    else if (json_is_integer(value))
        (void)snprintf(out, CELL_BYTES, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        (void)snprintf(out, CELL_BYTES, "%s", json_is_true(value) ? "yes" : "no");
    else if (value == NULL || json_is_null(value)) (void)snprintf(out, CELL_BYTES, "-");
    else {
        char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        (void)snprintf(out, CELL_BYTES, "%s", text == NULL ? "?" : text);
        free(text);
    }
    for (char *c = out; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    }
    cut(out, width_max);
}

static void measure(const json_t *rows, const rt_column columns[], size_t count, int widths[COLUMNS_MAX]) {
    char text[CELL_BYTES];
    for (size_t c = 0; c < count; c++) widths[c] = places(columns[c].title);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        for (size_t c = 0; c < count; c++) {
            cell(json_object_get(row, columns[c].key), columns[c].width_max, text);
            if (places(text) > widths[c]) widths[c] = places(text);
        }
    }
}

static void put(const char *text, int width, bool right, bool last) {
    const int pad = width - places(text);
    const char *colour = colour_of(text);
    if (right) (void)printf("%*s", pad, "");
    (void)printf("%s%s%s", colour, text, colour[0] == '\0' ? "" : colour_end());
    if (!right && !last) (void)printf("%*s", pad, "");
    (void)fputs(last ? "\n" : "  ", stdout);
}

void rt_table_print(const json_t *rows, const rt_column columns[], size_t count, const char *none) {
    int widths[COLUMNS_MAX];
    char text[CELL_BYTES];
    if (json_array_size(rows) == 0) {
        (void)puts(none);
        return;
    }
    measure(rows, columns, count, widths);
    for (size_t c = 0; c < count; c++) put(columns[c].title, widths[c], columns[c].right, c + 1 == count);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        for (size_t c = 0; c < count; c++) {
            cell(json_object_get(row, columns[c].key), columns[c].width_max, text);
            put(text, widths[c], columns[c].right, c + 1 == count);
        }
    }
}

void rt_fields_print(json_t *object) {
    const char *key;
    json_t *value;
    char text[CELL_BYTES];
    json_object_foreach(object, key, value) {
        cell(value, 0, text);
        (void)printf("%-14s %s%s%s\n", key, colour_of(text), text, colour_end());
    }
}
