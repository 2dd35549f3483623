/* scan.h: reading JSON text without building a tree.
 *
 * One pass with yajl's SAX interface cuts out the fields that the caller names; their values stay the text that came in.
 * What is accepted is what RFC 8259 says: UTF-8 (no surrogates, nothing over U+10FFFF), no NaN, no comments, nothing
 * behind the document; of a key that is there twice the last value counts, as in Python. */
#ifndef RT_JSON_SCAN_H
#define RT_JSON_SCAN_H
#include "base/arena.h"

enum {
    RT_JSON_DEPTH_MAX = 64, /* brackets within brackets */
    RT_JSON_FIELDS_MAX = 8
};

typedef enum rt_json_kind {
    RT_JSON_ABSENT = 0,
    RT_JSON_NULL,
    RT_JSON_BOOL,
    RT_JSON_INT,
    RT_JSON_REAL,
    RT_JSON_STRING,
    RT_JSON_OBJECT,
    RT_JSON_ARRAY
} rt_json_kind;

typedef struct rt_json_slice {
    rt_json_kind kind;
    rt_str text;     /* as it stands in the document, a string with its quotes and escapes */
    int64_t integer; /* INT; BOOL: 0 or 1 */
} rt_json_slice;

typedef enum rt_json_fault {
    RT_JSON_FINE = 0,
    RT_JSON_MALFORMED,
    RT_JSON_TOO_DEEP,
    RT_JSON_INT_TOO_LARGE, /* an integer outside int64, anywhere */
    RT_JSON_TOO_MANY,      /* more rows than rows_max */
    RT_JSON_NOMEM
} rt_json_fault;

typedef struct rt_json_scan {
    /* What is wanted. The fields are those of the top object, or of each object in the array that the top object has
     * under the name `list`. */
    rt_str list;          /* empty: the top object itself */
    const rt_str *fields; /* RT_JSON_FIELDS_MAX at most; NULL with none: the text is only checked */
    size_t fields_count;
    uint32_t rows_max;    /* of the list, >= 1 */
    bool any_integer;     /* one beyond 64 bits is a REAL, and no RT_JSON_INT_TOO_LARGE */
    rt_arena *arena;      /* for rows */

    /* What was found. */
    rt_json_kind top;       /* the whole document */
    rt_json_kind list_kind; /* what is called `list`; ABSENT: nothing */
    bool odd_rows;          /* the list has elements that are no objects */
    rt_str stray;           /* the first member of a row that is no field, in the arena; ptr NULL: there is none */
    rt_json_slice *rows;    /* row r's field f is rows[r * fields_count + f]; lends from the text */
    uint32_t rows_count;    /* 1 for the top object */
} rt_json_scan;

/* Fills what was found; it is whole only with RT_JSON_FINE. */
rt_json_fault rt_json_scan_text(rt_json_scan *scan, rt_str text);

#endif
