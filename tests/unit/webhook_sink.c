#include "webhook_sink.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 1 << 20, CLIENTS_MAX = 1024 };

struct sink {
    int listener, port;
    pthread_t acceptor;
    pthread_mutex_t lock; /* guards what follows */
    bool closing;
    int connections, requests, busy, busiest;
    char *last;
    int fds[CLIENTS_MAX];
    pthread_t threads[CLIENTS_MAX];
};

typedef struct client {
    sink *s;
    int fd;
    char *request;
    size_t len;
} client;

static bool closing(sink *s) {
    pthread_mutex_lock(&s->lock);
    const bool yes = s->closing;
    pthread_mutex_unlock(&s->lock);
    return yes;
}

static bool send_all(int fd, const char *bytes, size_t len) {
    while (len > 0) {
        const ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool say(int fd, const char *text) { return send_all(fd, text, strlen(text)); }

static bool answer(int fd, int status, const char *header, const char *body) {
    char text[4096];
    (void)snprintf(text, sizeof text, "HTTP/1.1 %d Something\r\nContent-Length: %zu\r\n%s\r\n%s", status,
                   status == 204 ? (size_t)0 : strlen(body), header, status == 204 ? "" : body);
    return say(fd, text);
}

static void pause_ms(int ms) { (void)poll(NULL, 0, ms); }

/* Sends `chunk` again and again until the other side has had enough. */
static bool repeat(client *c, const char *head, const char *chunk, int every_ms) {
    if (!say(c->fd, head)) return false;
    while (!closing(c->s) && say(c->fd, chunk)) {
        if (every_ms > 0) pause_ms(every_ms);
    }
    return false;
}

static bool reset(int fd) {
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    return false;
}

static bool wait_for_end(client *c) {
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    while (!closing(c->s) && poll(&p, 1, 20) == 0) continue;
    return false;
}

static bool redirect(client *c, int status, const char *to) {
    char header[1100];
    (void)snprintf(header, sizeof header, "Location: %s\r\n", to);
    return answer(c->fd, status, header, "elsewhere");
}

static bool is(const char *path, const char *want) { return strcmp(path, want) == 0; }

static char chunk_of_x[16384];

/* False: the connection ends. */
static bool misbehave(client *c, const char *path) {
    if (is(path, "/hang")) return wait_for_end(c);
    if (is(path, "/reset")) return reset(c->fd);
    if (is(path, "/close")) return false;
    if (is(path, "/early")) return say(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") && false;
    if (is(path, "/garbage")) return say(c->fd, "\x01\x02 what? \xff\xfe\r\n\r\n") && false;
    if (is(path, "/old")) return say(c->fd, "<html>hello from 1991</html>") && false;
    if (is(path, "/odd")) return say(c->fd, "HTTP/1.1 20 Short\r\nContent-Length: 0\r\n\r\n") && false;
    if (is(path, "/huge")) return repeat(c, "HTTP/1.1 200 OK\r\n\r\n", chunk_of_x, 0);
    if (is(path, "/drip")) return repeat(c, "HTTP/1.1 200 OK\r\n\r\n", "x", 20);
    if (is(path, "/headers")) return repeat(c, "HTTP/1.1 200 OK\r\n", "X-More: and more\r\n", 0);
    return answer(c->fd, 400, "", "no such path");
}

static bool serve(client *c, const char *path) {
    char header[256], body[64];
    int status;
    if (sscanf(path, "/%3d", &status) == 1) {
        (void)snprintf(body, sizeof body, "answer %d", status);
        return answer(c->fd, status, "", body);
    }
    if (strncmp(path, "/to?", 4) == 0) return redirect(c, 307, path + 4);
    if (is(path, "/see-other")) return redirect(c, 303, "/200");
    if (is(path, "/found")) return redirect(c, 307, "/201");
    if (is(path, "/loop")) return redirect(c, 302, "/loop");
    if (is(path, "/binary")) return answer(c->fd, 500, "", "a\x01\xff\xc3\xa9\xe2\x82");
    if (is(path, "/once")) return answer(c->fd, 200, "", "bye") && false;
    if (is(path, "/slow")) {
        pause_ms(50);
        return answer(c->fd, 200, "", "at last");
    }
    if (strncmp(path, "/later/", 7) == 0) {
        (void)snprintf(header, sizeof header, "Retry-After: %.200s\r\n", path + 7);
        for (char *p = header; *p != '\0'; p++) {
            if (*p == '_') *p = ' ';
        }
        return answer(c->fd, 429, header, "later");
    }
    return misbehave(c, path);
}

static bool receive(client *c, size_t wanted) {
    while (c->len < wanted) {
        const ssize_t got = recv(c->fd, c->request + c->len, wanted - c->len, 0);
        if (got <= 0) return false;
        c->len += (size_t)got;
    }
    c->request[c->len] = '\0';
    return true;
}

/* Reads one request whole. False: there is none any more. */
static bool next_request(client *c) {
    c->len = 0;
    c->request[0] = '\0';
    char *end;
    while ((end = strstr(c->request, "\r\n\r\n")) == NULL) {
        if (c->len == REQUEST_MAX || !receive(c, c->len + 1)) return false;
        // A TLS handshake, which this server does not speak.
        if (c->request[0] == 0x16) return say(c->fd, "HTTP/1.1 400 Bad Request\r\n\r\n") && false;
    }
    const char *length = strcasestr(c->request, "\r\ncontent-length:");
    const size_t body = length == NULL ? 0 : (size_t)strtoul(length + 17, NULL, 10);
    return c->len + body <= REQUEST_MAX && receive(c, c->len + body);
}

static void note(client *c, int busy) {
    sink *s = c->s;
    pthread_mutex_lock(&s->lock);
    if (busy > 0) {
        s->requests++;
        free(s->last);
        s->last = malloc(c->len + 1);
        if (s->last != NULL) memcpy(s->last, c->request, c->len + 1);
    }
    s->busy += busy;
    if (s->busy > s->busiest) s->busiest = s->busy;
    pthread_mutex_unlock(&s->lock);
}

static void *run_client(void *ctx) {
    client *c = ctx;
    char path[1024];
    bool open = true;
    while (open && next_request(c)) {
        note(c, 1);
        open = sscanf(c->request, "POST %1023s", path) == 1 && serve(c, path);
        note(c, -1);
    }
    (void)shutdown(c->fd, SHUT_WR);
    pthread_mutex_lock(&c->s->lock);
    for (int i = 0; i < c->s->connections; i++) {
        if (c->s->fds[i] == c->fd) c->s->fds[i] = -1;
    }
    (void)close(c->fd);
    pthread_mutex_unlock(&c->s->lock);
    free(c->request);
    free(c);
    return NULL;
}

static void *run_acceptor(void *ctx) {
    sink *s = ctx;
    int fd;
    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        client *c = calloc(1, sizeof *c);
        if (c == NULL) abort();
        *c = (client){.s = s, .fd = fd, .request = malloc(REQUEST_MAX + 1)};
        pthread_mutex_lock(&s->lock);
        if (c->request == NULL || s->connections == CLIENTS_MAX) abort();
        s->fds[s->connections] = fd;
        if (pthread_create(&s->threads[s->connections], NULL, run_client, c) != 0) abort();
        s->connections++;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

sink *sink_open(void) {
    sink *s = calloc(1, sizeof *s);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    if (s == NULL) abort();
    memset(chunk_of_x, 'x', sizeof chunk_of_x - 1);
    pthread_mutex_init(&s->lock, NULL);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(s->listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(s->listener, 1024) != 0) abort();
    if (getsockname(s->listener, (struct sockaddr *)&at, &len) != 0) abort();
    s->port = ntohs(at.sin_port);
    if (pthread_create(&s->acceptor, NULL, run_acceptor, s) != 0) abort();
    return s;
}

int sink_port(const sink *s) { return s->port; }

static int read_counter(sink *s, const int *counter) {
    pthread_mutex_lock(&s->lock);
    const int value = *counter;
    pthread_mutex_unlock(&s->lock);
    return value;
}

int sink_connections(sink *s) { return read_counter(s, &s->connections); }
int sink_requests(sink *s) { return read_counter(s, &s->requests); }
int sink_busiest(sink *s) { return read_counter(s, &s->busiest); }

char *sink_last(sink *s) {
    pthread_mutex_lock(&s->lock);
    char *copy = NULL;
    if (s->last != NULL && asprintf(&copy, "%s", s->last) < 0) abort();
    pthread_mutex_unlock(&s->lock);
    return copy;
}

void sink_close(sink *s) {
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)pthread_join(s->acceptor, NULL);
    (void)close(s->listener);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    const int count = s->connections;
    for (int i = 0; i < count; i++) {
        if (s->fds[i] >= 0) (void)shutdown(s->fds[i], SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < count; i++) (void)pthread_join(s->threads[i], NULL);
    pthread_mutex_destroy(&s->lock);
    free(s->last);
    free(s);
}
