#include "runtime/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 4096 };

static rt_code check_secret(int fd, const char *path, rt_err *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return rt_fail(err, RT_E_IO, errno, "%s: %s", path, strerror(errno));
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) == 0) return RT_OK;
    return rt_fail(err, RT_E_FORBIDDEN, 0,
                   "%s holds secrets, but others than its owner may use it: chmod 600 it", path);
}

static rt_code read_all(int fd, const char *path, size_t bytes_max, rt_buf *out, rt_err *err) {
    char chunk[CHUNK_BYTES];
    for (;;) {
        const ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rt_fail(err, RT_E_IO, errno, "%s: %s", path, strerror(errno));
        if (n == 0) return RT_OK;
        if ((size_t)n > bytes_max - out->len) {
            return rt_fail(err, RT_E_TOO_LARGE, 0, "%s is longer than %zu bytes", path, bytes_max);
        }
        rt_buf_add(out, (rt_str){.ptr = chunk, .len = (size_t)n});
        if (out->failed) return rt_fail(err, RT_E_NOMEM, ENOMEM, "%s", path);
    }
}

rt_code rt_file_read(const char *path, size_t bytes_max, bool secret, rt_buf *out, rt_err *err) {
    RT_ASSERT(out->len == 0);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return rt_fail(err, RT_E_IO, errno, "%s: %s", path, strerror(errno));
    rt_code code = secret ? check_secret(fd, path, err) : RT_OK;
    if (code == RT_OK) code = read_all(fd, path, bytes_max, out, err);
    (void)close(fd);
    return code;
}

rt_code rt_file_read_of(const char *setting, const char *path, size_t bytes_max, bool secret, rt_buf *out, rt_err *err) {
    rt_err why = {.code = RT_OK};
    const rt_code code = rt_file_read(path, bytes_max, secret, out, &why);
    return code == RT_OK ? RT_OK : rt_fail(err, code, why.sys_errno, "%s: %s", setting, why.msg);
}
