#include "executor/plugin/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/plugin/host.h"

enum { PRINTED_BYTES = 4096 /* taken at a time */ };

/* ---- starting ------------------------------------------------------------------------------------------ */

static void close_fd(int *fd) {
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

static int set_attributes(posix_spawnattr_t *a) {
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int bad = posix_spawnattr_setsigmask(a, &none);
    if (bad == 0) bad = posix_spawnattr_setsigdefault(a, &all);
    // Its own session: Ctrl-C at a terminal is for the server, and one kill reaches all that the plugin started.
    const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID;
    return bad != 0 ? bad : posix_spawnattr_setflags(a, flags);
}

/* Only the socket and what it prints to are left open. */
static int set_files(posix_spawn_file_actions_t *a, int socket_fd, int print_fd) {
    int bad = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (bad == 0) bad = posix_spawn_file_actions_adddup2(a, print_fd, STDOUT_FILENO);
    if (bad == 0) bad = posix_spawn_file_actions_adddup2(a, print_fd, STDERR_FILENO);
    if (bad == 0) bad = posix_spawn_file_actions_adddup2(a, socket_fd, RT_PLUGIN_HOST_FD);
    return bad != 0 ? bad : posix_spawn_file_actions_addclosefrom_np(a, RT_PLUGIN_HOST_FD + 1);
}

static int spawn(const char *name, const char *file, int socket_fd, int print_fd, pid_t *pid) {
    char command[] = RT_PLUGIN_HOST_COMMAND, program[] = "retryd";
    char *const argv[] = {program, command, (char *)(uintptr_t)name, (char *)(uintptr_t)file, NULL};
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    int bad = posix_spawnattr_init(&attributes);
    if (bad != 0) return bad;
    bad = posix_spawn_file_actions_init(&files);
    if (bad == 0) {
        bad = set_attributes(&attributes);
        if (bad == 0) bad = set_files(&files, socket_fd, print_fd);
        // Not by its path: the program on disk may be a newer one by now.
        if (bad == 0) bad = posix_spawn(pid, "/proc/self/exe", &files, &attributes, argv, environ);
        (void)posix_spawn_file_actions_destroy(&files);
    }
    (void)posix_spawnattr_destroy(&attributes);
    return bad;
}

static rt_code watch(rt_process *p, rt_watched what, int fd, rt_err *err) {
    p->watches[what] = (rt_watch){.process = p, .what = what};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &p->watches[what]};
    if (fd >= 0 && epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) return RT_OK;
    return rt_fail(err, RT_E_IO, errno, "a plugin's descriptor: %s", strerror(errno));
}

static rt_code open_process(rt_process *p, const char *name, const char *file, rt_err *err) {
    int pair[2], printed[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return rt_fail(err, RT_E_IO, errno, "socketpair: %s", strerror(errno));
    }
    p->fd = pair[0];
    if (pipe2(printed, O_CLOEXEC) != 0) {
        (void)close(pair[1]);
        return rt_fail(err, RT_E_IO, errno, "pipe: %s", strerror(errno));
    }
    p->printed_fd = printed[0];
    // Only our ends: the child waits, and its plugin may print without looking.
    (void)fcntl(p->fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(p->printed_fd, F_SETFL, O_NONBLOCK);
    const int bad = spawn(name, file, pair[1], printed[1], &p->pid);
    (void)close(pair[1]);
    (void)close(printed[1]);
    if (bad != 0) {
        p->pid = 0;
        return rt_fail(err, RT_E_IO, bad, "a process for plugin %s: %s", name, strerror(bad));
    }
    p->end_fd = pidfd_open(p->pid, 0);
    rt_code code = watch(p, RT_WATCH_SOCKET, p->fd, err);
    if (code == RT_OK) code = watch(p, RT_WATCH_PRINTED, p->printed_fd, err);
    return code == RT_OK ? watch(p, RT_WATCH_END, p->end_fd, err) : code;
}

static void add_frame(rt_process *p, rt_frame_kind kind, size_t len) {
    unsigned char head[RT_FRAME_HEAD_BYTES];
    rt_frame_head(head, kind, (uint32_t)len);
    rt_buf_add(&p->out, (rt_str){.ptr = (const char *)head, .len = sizeof head});
}

rt_code rt_process_start(const char *name, const char *file, const struct stat *like, rt_str settings,
                         int epoll_fd, rt_process **out, rt_err *err) {
    rt_process *p = calloc(1, sizeof *p);
    if (p == NULL) return rt_fail(err, RT_E_NOMEM, ENOMEM, "out of memory");
    p->fd = p->printed_fd = p->end_fd = -1;
    p->epoll_fd = epoll_fd;
    p->file = *like;
    rt_code code = open_process(p, name, file, err);
    if (code == RT_OK) {
        add_frame(p, RT_FRAME_SETTINGS, settings.len);
        rt_buf_add(&p->out, settings);
        if (p->out.failed) code = rt_fail(err, RT_E_NOMEM, ENOMEM, "out of memory");
    }
    if (code != RT_OK) {
        rt_process_free(p);
        return code;
    }
    (void)rt_process_send(p); // a child that has hung up is seen by its end
    *out = p;
    return RT_OK;
}

/* ---- to and fro ---------------------------------------------------------------------------------------- */

bool rt_process_send_run(rt_process *p, uint32_t answer_max, rt_str run) {
    RT_ASSERT(p->sent == p->out.len);
    rt_buf_clear(&p->out);
    p->sent = 0;
    add_frame(p, RT_FRAME_RUN, run.len + 4);
    for (int i = 0; i < 4; i++) rt_buf_add_char(&p->out, (char)(answer_max >> (8 * i)));
    rt_buf_add(&p->out, run);
    if (p->out.failed) {
        rt_buf_clear(&p->out);
        return false;
    }
    (void)rt_process_send(p); // a child that has hung up is seen by its end
    return true;
}

static void want_room(rt_process *p, bool want) {
    if (p->sending == want) return;
    p->sending = want;
    struct epoll_event event = {.events = want ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = &p->watches[RT_WATCH_SOCKET]};
    (void)epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->fd, &event);
}

bool rt_process_send(rt_process *p) {
    while (p->sent < p->out.len) {
        const ssize_t sent = send(p->fd, p->out.ptr + p->sent, p->out.len - p->sent, MSG_NOSIGNAL);
        if (sent >= 0) {
            p->sent += (size_t)sent;
        } else if (errno == EAGAIN) {
            want_room(p, true);
            return true;
        } else if (errno != EINTR) {
            want_room(p, false);
            return false;
        }
    }
    // Large runs are rare, and there are many processes.
    rt_buf_deinit(&p->out);
    p->sent = 0;
    want_room(p, false);
    return true;
}

void rt_process_take_printed(rt_process *p, int64_t now_ms, rt_each_line *each, void *ctx) {
    char bytes[PRINTED_BYTES];
    if (p->printed_fd < 0) return;
    const ssize_t got = read(p->printed_fd, bytes, sizeof bytes);
    if (got > 0) {
        rt_lines_take(&p->lines, (rt_str){.ptr = bytes, .len = (size_t)got}, now_ms, each, ctx);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        rt_lines_end(&p->lines, each, ctx);
        close_fd(&p->printed_fd);
    }
}

/* ---- ending -------------------------------------------------------------------------------------------- */

void rt_process_hang_up(rt_process *p) { (void)shutdown(p->fd, SHUT_WR); }

void rt_process_kill(rt_process *p) {
    if (p->pid <= 0) return;
    (void)kill(-p->pid, SIGKILL);
    // Until it has a session of its own it is in no group of its own either.
    (void)kill(p->pid, SIGKILL);
}

static void say_how(const siginfo_t *how, char *words, size_t cap) {
    if (how->si_code == CLD_EXITED) {
        (void)snprintf(words, cap, "exited with status %d", how->si_status);
    } else {
        const char *name = sigdescr_np(how->si_status);
        (void)snprintf(words, cap, "killed by signal %d (%s)", how->si_status,
                       name != NULL ? name : "unknown");
    }
}

bool rt_process_ended(rt_process *p, char *words, size_t cap) {
    siginfo_t how = {.si_pid = 0};
    if (waitid(P_PID, (id_t)p->pid, &how, WEXITED | WNOHANG | WNOWAIT) != 0 || how.si_pid == 0) return false;
    // While its body is still there its number is no other's: what it has started goes now, or never.
    (void)kill(-p->pid, SIGKILL);
    (void)waitid(P_PID, (id_t)p->pid, &how, WEXITED);
    p->pid = 0;
    say_how(&how, words, cap);
    return true;
}

void rt_process_free(rt_process *p) {
    if (p == NULL) return;
    if (p->pid > 0) {
        rt_process_kill(p);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) {}
    }
    close_fd(&p->fd); // out of epoll with it
    close_fd(&p->printed_fd);
    close_fd(&p->end_fd);
    rt_frame_clear(&p->in);
    rt_buf_deinit(&p->out);
    free(p);
}
