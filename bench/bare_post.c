/* bare_post.c: what bounds durable posts: a libmicrohttpd handler that suspends each POST until an LMDB
 * commit with sync holds its body, and nothing else. Commits take all that came in while the last one was on
 * its way.
 *
 *   bare_post DIR    prints the port it listens on
 *   bare_post -      the same, answering at once: the HTTP side alone */
#include <errno.h>
#include <lmdb.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common.h"

typedef struct post {
    struct post *next;
    struct MHD_Connection *connection;
    size_t len, room;
    char *body;
    bool stored;
} post;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static post *incoming, *finished;
static int finished_fd;
static struct MHD_Response *created;
static bool durable;

static void must(int code, const char *what) {
    if (code != MDB_SUCCESS) die("%s: %s", what, mdb_strerror(code));
}

static void *committer(void *dir) {
    MDB_env *env;
    MDB_dbi dbi = 0;
    must(mdb_env_create(&env), "create");
    must(mdb_env_set_mapsize(env, (size_t)32 << 30), "mapsize");
    must(mdb_env_open(env, dir, 0, 0600), "open");
    uint64_t id = 0;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (incoming == NULL) pthread_cond_wait(&wake, &lock);
        post *all = incoming;
        incoming = NULL;
        pthread_mutex_unlock(&lock);
        MDB_txn *txn;
        must(mdb_txn_begin(env, NULL, 0, &txn), "begin");
        if (dbi == 0) must(mdb_dbi_open(txn, NULL, MDB_INTEGERKEY, &dbi), "dbi");
        post *last = NULL;
        for (post *p = all; p != NULL; last = p, p = p->next) {
            MDB_val key = {sizeof id, &id}, value = {p->len, p->body};
            must(mdb_put(txn, dbi, &key, &value, MDB_APPEND), "put");
            id++;
        }
        must(mdb_txn_commit(txn), "commit");
        pthread_mutex_lock(&lock);
        last->next = finished;
        finished = all;
        pthread_mutex_unlock(&lock);
        if (eventfd_write(finished_fd, 1) != 0) die("eventfd: %s", strerror(errno));
    }
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *data_len,
                              void **mine) {
    (void)ctx, (void)url, (void)method, (void)version;
    post *p = *mine;
    if (p == NULL) {
        *mine = p = calloc(1, sizeof *p);
        if (p == NULL) return MHD_NO;
        p->connection = connection;
        return MHD_YES;
    }
    if (*data_len > 0) {
        if (p->len + *data_len > p->room) {
            p->room = (p->len + *data_len) * 2;
            p->body = realloc(p->body, p->room);
            if (p->body == NULL) die("out of memory");
        }
        memcpy(p->body + p->len, data, *data_len);
        p->len += *data_len;
        *data_len = 0;
        return MHD_YES;
    }
    if (durable && !p->stored) {
        MHD_suspend_connection(connection);
        pthread_mutex_lock(&lock);
        p->next = incoming;
        incoming = p;
        pthread_cond_signal(&wake);
        pthread_mutex_unlock(&lock);
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_CREATED, created);
}

static void completed(void *ctx, struct MHD_Connection *connection, void **mine,
                      enum MHD_RequestTerminationCode why) {
    (void)ctx, (void)connection, (void)why;
    post *p = *mine;
    if (p == NULL) return;
    free(p->body);
    free(p);
}

static void resume_finished(void) {
    eventfd_t n;
    (void)eventfd_read(finished_fd, &n);
    pthread_mutex_lock(&lock);
    post *p = finished;
    finished = NULL;
    pthread_mutex_unlock(&lock);
    while (p != NULL) {
        post *next = p->next;
        p->stored = true;
        MHD_resume_connection(p->connection);
        p = next;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) die("usage: bare_post DIR|-");
    durable = strcmp(argv[1], "-") != 0;
    static char body[] = "{\"resources\": [\"/v2/queues/bench/messages/000000000000000000000000\"]}";
    created = MHD_create_response_from_buffer(sizeof body - 1, body, MHD_RESPMEM_PERSISTENT);
    finished_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    uint16_t port = 0;
    int listener = listen_local(&port);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, NULL,
                         MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, 2048u,
                         MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_END);
    if (daemon == NULL || finished_fd < 0) die("libmicrohttpd does not start");
    pthread_t thread;
    if (durable && pthread_create(&thread, NULL, committer, argv[1]) != 0) die("no thread");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[2] = {{.fd = info->epoll_fd, .events = POLLIN}, {.fd = finished_fd, .events = POLLIN}};
    printf("%u\n", port);
    (void)fflush(stdout);
    for (;;) {
        MHD_UNSIGNED_LONG_LONG timeout;
        const int wait_ms =
            MHD_get_timeout(daemon, &timeout) == MHD_YES && timeout < 1000 ? (int)timeout : 1000;
        if (poll(fds, 2, wait_ms) < 0 && errno != EINTR) die("poll: %s", strerror(errno));
        if (fds[1].revents & POLLIN) resume_finished();
        if (MHD_run(daemon) != MHD_YES) die("MHD_run");
    }
}
