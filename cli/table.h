/* table.h: rows of JSON values in aligned columns. */
#ifndef RT_CLI_TABLE_H
#define RT_CLI_TABLE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rt_column {
    const char *title;
    const char *key;   /* of the row's object */
    int width_max;     /* longer texts are cut with an ellipsis; 0: at 500 */
    bool right;        /* numbers */
} rt_column;

/* Prints an array of objects; `none` if it is empty. On a terminal that is narrower than the table a row goes on on further
 * lines, column by column. */
void rt_table_print(const json_t *rows, const rt_column columns[], size_t count, const char *none);
/* How many lines a row takes there. */
int rt_table_lines(const json_t *rows, const rt_column columns[], size_t count);
/* Of the terminal that is written to; 0: unknown, or it is none. */
void rt_terminal_size(int *columns, int *lines);
/* A line of key and value for each member of an object, in its order; nothing is cut. */
void rt_fields_print(json_t *object);
/* {"a": {"b": 1}} becomes {"a.b": 1}, one level; takes the object, returns another one, owned. */
json_t *rt_fields_spread(json_t *object);
/* Whether to use colours: a terminal, and no NO_COLOR. */
bool rt_colour(void);

#endif
