/* file.h: reading small files whole. */
#ifndef RT_RUNTIME_FILE_H
#define RT_RUNTIME_FILE_H
#include "base/str.h"

/* Adds the contents of `path` to *out. `secret`: refused (RT_E_FORBIDDEN) if group or others may read or
 * write it. RT_E_TOO_LARGE: longer than `bytes_max`. Messages name the file. */
RT_MUST_USE rt_code rt_file_read(const char *path, size_t bytes_max, bool secret, rt_buf *out, rt_err *err);
/* The same of the file that a setting names; messages begin with the setting. */
RT_MUST_USE rt_code rt_file_read_of(const char *setting, const char *path, size_t bytes_max, bool secret, rt_buf *out,
                                    rt_err *err);

#endif
