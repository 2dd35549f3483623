/* table.h: rows of JSON values in aligned columns. */
#ifndef RT_CLI_TABLE_H
#define RT_CLI_TABLE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rt_column {
    const char *title;
    const char *key;   /* of the row's object */
    int width_max;     /* longer texts are cut with an ellipsis; 0: never */
    bool right;        /* numbers */
} rt_column;

/* Prints an array of objects; `none` if it is empty. */
void rt_table_print(const json_t *rows, const rt_column columns[], size_t count, const char *none);
/* "key: value" lines of one object, in its order. */
void rt_fields_print(json_t *object);
/* Whether to use colours: a terminal, and no NO_COLOR. */
bool rt_colour(void);

#endif
