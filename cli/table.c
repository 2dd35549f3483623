#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

enum {
    CELL_PLACES_MAX = 500,
    CELL_BYTES = 4 * CELL_PLACES_MAX + 16,
    COLUMNS_MAX = 16,
    GAP = 2, // blanks between columns, and before what a line goes on with
    KEY_PLACES = 14,
    NAME_BYTES = 256
};

bool rt_colour(void) {
    const char *no = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0');
}

void rt_terminal_size(int *columns, int *lines) {
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns = known ? size.ws_col : 0;
    *lines = known ? size.ws_row : 0;
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

/* `text` has CELL_BYTES. */
static void cut(char *text, int width) {
    if (places(text) <= width) return;
    int n = 0;
    char *at = text;
    for (; *at != '\0' && n < width - 1; n++) {
        at++;
        while (((unsigned char)*at & 0xc0) == 0x80) at++;
    }
    (void)snprintf(at, CELL_BYTES - (size_t)(at - text), "…");
}

/* What a cell shows, owned; NULL: no memory. Control characters would move the cursor: shown as blanks. */
static char *text_of(const json_t *value) {
    char number[32];
    const char *plain = NULL;
    if (json_is_string(value)) plain = json_string_value(value);
    else if (json_is_boolean(value)) plain = json_is_true(value) ? "yes" : "no";
    else if (value == NULL || json_is_null(value)) plain = "-";
    else if (json_is_integer(value)) {
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        plain = number;
    }
    char *text = plain != NULL ? rt_str_dup(rt_str_of(plain))
                               : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    for (char *c = text; c != NULL && *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) *c = ' ';
    }
    return text;
}

/* The same of a column, whose texts are cut. */
static void cell(const json_t *row, const rt_column *column, char *out) {
    char *text = text_of(json_object_get(row, column->key));
    (void)snprintf(out, CELL_BYTES, "%s", text == NULL ? "?" : text);
    free(text);
    cut(out, column->width_max > 0 ? column->width_max : CELL_PLACES_MAX);
}

/* How wide each column is, and which of them begin a further line, because a terminal is narrower than all of them. */
typedef struct layout {
    int widths[COLUMNS_MAX];
    bool begins_line[COLUMNS_MAX];
    int lines; /* a row */
} layout;

static void fold(layout *l, size_t count, int room) {
    l->lines = 1;
    int used = 0;
    for (size_t c = 0; c < count; c++) {
        l->begins_line[c] = room > 0 && c > 0 && used + l->widths[c] > room;
        if (l->begins_line[c]) {
            l->lines++;
            used = GAP;
        }
        used += l->widths[c] + GAP;
    }
}

static layout lay_out(const json_t *rows, const rt_column columns[], size_t count) {
    layout l = {.lines = 1};
    char text[CELL_BYTES];
    for (size_t c = 0; c < count; c++) l.widths[c] = places(columns[c].title);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        for (size_t c = 0; c < count; c++) {
            cell(row, &columns[c], text);
            if (places(text) > l.widths[c]) l.widths[c] = places(text);
        }
    }
    int room, height;
    rt_terminal_size(&room, &height);
    fold(&l, count, room);
    return l;
}

/* `last`: nothing stands behind it on its line, so it needs no blanks. */
static void put(const char *text, int width, bool right, bool last) {
    const int pad = width - places(text);
    const char *colour = colour_of(text);
    if (right) (void)printf("%*s", pad, "");
    (void)printf("%s%s%s", colour, text, colour[0] == '\0' ? "" : colour_end());
    if (!right && !last) (void)printf("%*s", pad, "");
    if (last) (void)putchar('\n');
    else (void)printf("%*s", GAP, "");
}

/* A row, or without one the titles. */
static void put_row(const layout *l, const json_t *row, const rt_column columns[], size_t count) {
    char text[CELL_BYTES];
    for (size_t c = 0; c < count; c++) {
        if (l->begins_line[c]) (void)printf("%*s", GAP, "");
        if (row != NULL) cell(row, &columns[c], text);
        put(row != NULL ? text : columns[c].title, l->widths[c], columns[c].right,
            c + 1 == count || l->begins_line[c + 1]);
    }
}

void rt_table_print(const json_t *rows, const rt_column columns[], size_t count, const char *none) {
    if (json_array_size(rows) == 0) {
        (void)puts(none);
        return;
    }
    const layout l = lay_out(rows, columns, count);
    put_row(&l, NULL, columns, count);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) put_row(&l, row, columns, count);
}

int rt_table_lines(const json_t *rows, const rt_column columns[], size_t count) {
    const layout l = lay_out(rows, columns, count);
    return l.lines;
}

/* The width of the longest key. */
static int measure_keys(json_t *object) {
    const char *key;
    json_t *value;
    int width = KEY_PLACES;
    json_object_foreach(object, key, value) {
        if (places(key) > width) width = places(key);
    }
    return width;
}

void rt_fields_print(json_t *object) {
    const int width = measure_keys(object);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char *text = text_of(value);
        const char *shown = text == NULL ? "?" : text;
        (void)printf("%-*s %s%s%s\n", width, key, colour_of(shown), shown, colour_end());
        free(text);
    }
}

json_t *rt_fields_spread(json_t *object) {
    json_t *spread = json_object();
    const char *key, *inner;
    json_t *value, *inner_value;
    json_object_foreach(object, key, value) {
        if (json_object_size(value) == 0) (void)json_object_set(spread, key, value);
        json_object_foreach(value, inner, inner_value) {
            char name[NAME_BYTES];
            (void)snprintf(name, sizeof name, "%s.%s", key, inner);
            (void)json_object_set(spread, name, inner_value);
        }
    }
    json_decref(object);
    return spread;
}
