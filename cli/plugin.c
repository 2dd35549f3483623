#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "executor/plugin/load.h"
#include "executor/plugin/plugins.h"

enum { LOAD_SECONDS_MAX = 10, REPORT_BYTES = 4096, PATH_BYTES = 2048 };

/* ---- in a child, since loading runs what is in the file ------------------------------------------------ */

static json_t *report_of(const char *path) {
    struct retryd_plugin p;
    rt_err err = {.msg = ""};
    if (rt_plugin_load(path, &p, &err) != RT_OK) return json_pack("{s:s}", "problem", err.msg);
    return json_pack("{s:s, s:i, s:b, s:b, s:b, s:b}", "name", p.name, "abi", (int)p.abi, "init",
                     p.init != NULL, "shutdown", p.shutdown != NULL, "validate", p.validate != NULL, "cancel",
                     p.cancel != NULL);
}

_Noreturn static void look(const char *path, int to) {
    (void)alarm(LOAD_SECONDS_MAX);
    char *text = json_dumps(report_of(path), JSON_COMPACT);
    const size_t len = text == NULL ? 0 : strlen(text);
    _exit(len > 0 && len < REPORT_BYTES && write(to, text, len) == (ssize_t)len ? 0 : 1);
}

/* ---- out here ------------------------------------------------------------------------------------------ */

static json_t *died(const char *path, int status) {
    char why[REPORT_BYTES];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        (void)snprintf(why, sizeof why, "%s: does not load within %d seconds", path, LOAD_SECONDS_MAX);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(why, sizeof why, "%s: crashes when it is loaded: signal %d (%s)", path,
                       WTERMSIG(status), sigdescr_np(WTERMSIG(status)));
    } else {
        (void)snprintf(why, sizeof why, "%s: ends the process that loads it, with status %d", path,
                       WEXITSTATUS(status));
    }
    return json_pack("{s:s}", "problem", why);
}

/* What `path` says of itself; NULL: there was no looking, and why was printed. */
static json_t *inspect(const char *path) {
    int fds[2];
    char report[REPORT_BYTES];
    (void)fflush(NULL);
    const pid_t pid = pipe2(fds, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid < 0) {
        (void)fprintf(stderr, "retryctl: cannot start a process: %s\n", strerror(errno));
        return NULL;
    }
    if (pid == 0) look(path, fds[1]);
    (void)close(fds[1]);
    const ssize_t len = read(fds[0], report, sizeof report); // one write, less than a pipe holds
    (void)close(fds[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    json_t *found = len > 0 ? json_loadb(report, (size_t)len, 0, NULL) : NULL;
    return found != NULL ? found : died(path, status);
}

static void print(const char *path, const json_t *found) {
    static const char *const OPTIONAL[] = {"init", "shutdown", "validate", "cancel"};
    const char *problem = json_string_value(json_object_get(found, "problem"));
    if (problem != NULL) {
        (void)puts(problem); // names the file
        return;
    }
    (void)printf("%s: fine: plugin %s, ABI %d, with run", path,
                 json_string_value(json_object_get(found, "name")),
                 (int)json_integer_value(json_object_get(found, "abi")));
    for (size_t i = 0; i < sizeof OPTIONAL / sizeof OPTIONAL[0]; i++) {
        if (json_is_true(json_object_get(found, OPTIONAL[i]))) (void)printf(", %s", OPTIONAL[i]);
    }
    (void)putchar('\n');
}

/* NULL: a server would find it. */
static json_t *misnamed(const char *path) {
    const char *slash = strrchr(path, '/');
    rt_str file = rt_str_of(slash != NULL ? slash + 1 : path);
    const rt_str end = RT_STR(".so");
    if (file.len > end.len && rt_str_eq((rt_str){file.ptr + file.len - end.len, end.len}, end)) {
        file.len -= end.len;
        if (rt_plugin_name_is_valid(file)) return NULL;
    }
    return json_sprintf("%s: a server wants NAME.so, NAME being 1 to %d of a-z, 0-9, '_' and '-'", path,
                        RT_PLUGIN_NAME_MAX);
}

int rt_cli_plugin_check(const rt_cli *cli, int argc, char **argv) {
    char path[PATH_BYTES];
    if (argc != 1) return 2;
    // dlopen takes a name without a slash for a library of the system.
    const char *folder = strchr(argv[0], '/') == NULL ? "./" : "";
    if ((size_t)snprintf(path, sizeof path, "%s%s", folder, argv[0]) >= sizeof path) return 2;
    json_t *found = inspect(path);
    if (found == NULL) return 1;
    json_t *name = json_object_get(found, "problem") == NULL ? misnamed(path) : NULL;
    if (name != NULL) (void)json_object_set_new(found, "problem", name);
    const int status = json_object_get(found, "problem") != NULL ? 1 : 0;
    if (rt_cli_print_json(cli, found)) return status;
    print(path, found);
    json_decref(found);
    return status;
}
