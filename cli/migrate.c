/* migrate.c: moving a store is the work of retryd itself, which has all stores in it; retryctl stays a client. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

/* The retryd that was installed with this retryctl; if there is none beside it, the one in the path. */
static void run_retryd(char **args) {
    char path[PATH_MAX];
    const ssize_t len = readlink("/proc/self/exe", path, sizeof path - sizeof "retryd");
    if (len > 0) {
        path[len] = '\0';
        char *slash = strrchr(path, '/');
        if (slash != NULL) {
            memcpy(slash + 1, "retryd", sizeof "retryd");
            (void)execv(path, args);
        }
    }
    (void)execvp("retryd", args);
}

int rt_cli_migrate_store(const rt_cli *cli, int argc, char **argv) {
    char **args = calloc((size_t)argc + 5, sizeof *args);
    if (args == NULL) return 1;
    char *const words[] = {(char[]){"retryd"}, (char[]){"migrate-store"}, (char[]){"--json"}, (char[]){"--force"}};
    int count = 0;
    args[count++] = words[0];
    args[count++] = words[1];
    for (int i = 0; i < argc; i++) args[count++] = argv[i];
    if (cli->json) args[count++] = words[2];
    if (cli->force) args[count++] = words[3];
    run_retryd(args);
    (void)fprintf(stderr, "retryctl: retryd cannot be run: %s\n", strerror(errno));
    free(args);
    return 1;
}
