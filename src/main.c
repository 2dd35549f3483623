/* main.c: the command line of retryd. */
#include <stdio.h>
#include <string.h>

#include "executor/plugin/host.h"
#include "migrate.h"
#include "serve.h"

static const char USAGE[] =
    "usage: retryd serve [--listen HOST:PORT] [--data DIR | --store URL] [--config FILE]\n"
    "                    [--set group.key=value]... [--insecure]\n"
    "       retryd migrate-store FROM TO [--config FILE] [--set group.key=value]... [--force] [--json]\n"
    "       retryd config --explain\n"
    "       retryd config --check [--config FILE] [--set group.key=value]... [--listen HOST:PORT] [--insecure]\n"
    "       retryd --version | --help\n"
    "\n"
    "  --listen HOST:PORT   127.0.0.1:8888 if not given; port 0 takes a free one\n"
    "  --data DIR           where the data is kept, ./retryd-data if not given; short for --store lmdb:DIR\n"
    "  --store URL          lmdb:DIR, postgresql://…, kafka://BROKERS/PREFIX, or plugin:FILE?REST for a store of your own\n"
    "  --config FILE        settings in INI form; `retryd config --explain` prints them all\n"
    "  --set group.key=value\n"
    "                       one setting; goes over the file\n"
    "  FROM, TO             stores as --store takes them: all of FROM goes into TO, which is empty, or holds what an\n"
    "                       earlier try had moved; --force does not look for others who use a database\n"
    "  --insecure           listen on other than loopback addresses although no tokens are configured\n";

enum { EXIT_USAGE = 2, SETS_MAX = 256, PATH_BYTES_MAX = 4096 };

typedef struct options {
    const char *listen, *data, *store, *config;
    const char *sets[SETS_MAX];
    size_t sets_count;
    bool insecure, explain, check, force, json;
} options;

static int complain(const char *what, const char *which) {
    (void)fprintf(stderr, "retryd: %s%s\nTry `retryd --help`.\n", what, which);
    return EXIT_USAGE;
}

/* Where the value of `name` goes; NULL: it takes none. */
static const char **value_of(options *o, const char *name) {
    if (strcmp(name, "--listen") == 0) return &o->listen;
    if (strcmp(name, "--data") == 0) return &o->data;
    if (strcmp(name, "--store") == 0) return &o->store;
    if (strcmp(name, "--config") == 0) return &o->config;
    if (strcmp(name, "--set") == 0 && o->sets_count < SETS_MAX) return &o->sets[o->sets_count++];
    return NULL;
}

static bool *flag_of(options *o, const char *name) {
    if (strcmp(name, "--insecure") == 0) return &o->insecure;
    if (strcmp(name, "--explain") == 0) return &o->explain;
    if (strcmp(name, "--check") == 0) return &o->check;
    if (strcmp(name, "--force") == 0) return &o->force;
    if (strcmp(name, "--json") == 0) return &o->json;
    return NULL;
}

/* Both "--name value" and "--name=value". Returns 0, or the exit status. */
static int parse(int argc, char **argv, options *o) {
    for (int i = 0; i < argc; i++) {
        char name[32] = {0};
        const char *equals = strchr(argv[i], '=');
        const size_t len = equals == NULL ? strlen(argv[i]) : (size_t)(equals - argv[i]);
        if (len >= sizeof name) return complain("unknown option ", argv[i]);
        memcpy(name, argv[i], len);
        bool *flag = equals == NULL ? flag_of(o, name) : NULL;
        if (flag != NULL) {
            *flag = true;
            continue;
        }
        const char **value = value_of(o, name);
        if (value == NULL) return complain("unknown option ", argv[i]);
        if (equals == NULL && i + 1 == argc) return complain("a value is missing behind ", argv[i]);
        *value = equals != NULL ? equals + 1 : argv[++i];
    }
    return 0;
}

static rt_code configure(const options *o, rt_config *c, rt_err *err) {
    rt_code code = RT_OK;
    if (o->config != NULL) code = rt_config_read(c, o->config, err);
    for (size_t i = 0; code == RT_OK && i < o->sets_count; i++) code = rt_config_assign(c, o->sets[i], err);
    if (code != RT_OK || o->listen == NULL) return code;
    char assignment[RT_HOST_MAX + 32];
    const int need = snprintf(assignment, sizeof assignment, "server.listen=%s", o->listen);
    if (need < 0 || (size_t)need >= sizeof assignment)
        return rt_fail(err, RT_E_INVALID, 0, "--listen is too long");
    return rt_config_assign(c, assignment, err);
}

static int serve(const options *o, const rt_config *c) {
    if (o->explain || o->check) return complain("--explain and --check belong to `retryd config`", "");
    if (o->force || o->json) return complain("--force and --json belong to `retryd migrate-store`", "");
    if (o->data != NULL && o->store != NULL) return complain("--data and --store exclude each other", "");
    char store[PATH_BYTES_MAX];
    const char *dir = o->data != NULL ? o->data : "./retryd-data";
    const int need = o->store != NULL ? snprintf(store, sizeof store, "%s", o->store)
                                      : snprintf(store, sizeof store, "lmdb:%s", dir);
    if (need < 0 || (size_t)need >= sizeof store) return complain("the path of the data is too long", "");
    return rt_serve(&(rt_serve_options){.config = c, .store = store, .insecure = o->insecure});
}

static int explain(void) {
    rt_buf text = {0};
    rt_config_explain(&text);
    const bool written =
        !text.failed && fwrite(text.ptr, 1, text.len, stdout) == text.len && fflush(stdout) == 0;
    rt_buf_deinit(&text);
    return written ? 0 : 1;
}

static int migrate(const options *o, const rt_config *c, char **stores) {
    return rt_migrate(&(rt_migrate_options){
        .config = c, .from = stores[0], .to = stores[1], .force = o->force, .json = o->json});
}

/* `stores`: two of them, for migrate-store; otherwise NULL. */
static int run(const char *command, const options *o, char **stores) {
    const bool is_serve = strcmp(command, "serve") == 0;
    const bool is_config = !is_serve && stores == NULL;
    if (is_config && o->explain) return explain();
    if (is_config && !o->check) return complain("`retryd config` wants --explain or --check", "");
    rt_err err;
    rt_config c;
    if (rt_config_init(&c, &err) != RT_OK) return 1;
    int status = 0;
    if (configure(o, &c, &err) != RT_OK) {
        (void)fprintf(stderr, "retryd: %s\n", err.msg);
        status = EXIT_USAGE;
    } else if (is_serve) {
        status = serve(o, &c);
    } else if (stores != NULL) {
        status = migrate(o, &c, stores);
    } else {
        status = rt_serve_check(&(rt_serve_options){.config = &c, .insecure = o->insecure});
        if (status == 0) (void)puts("The configuration is fine.");
    }
    rt_config_deinit(&c);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        (void)fputs(USAGE, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], RT_PLUGIN_HOST_COMMAND) == 0) return rt_plugin_host(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0) continue;
        (void)fputs(USAGE, stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        (void)puts("retryd " RETRYD_VERSION);
        return 0;
    }
    const bool moves = strcmp(argv[1], "migrate-store") == 0;
    if (!moves && strcmp(argv[1], "serve") != 0 && strcmp(argv[1], "config") != 0)
        return complain("unknown command ", argv[1]);
    if (moves && (argc < 4 || argv[2][0] == '-' || argv[3][0] == '-'))
        return complain("`retryd migrate-store` wants two stores, FROM and TO", "");
    const int words = moves ? 4 : 2;
    options o = {.listen = NULL};
    const int bad = parse(argc - words, argv + words, &o);
    return bad != 0 ? bad : run(argv[1], &o, moves ? argv + 2 : NULL);
}
