/* load_http.c: requests and answers of HTTP servers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

static const char HEAD[] = "%s HTTP/1.1\r\nHost: x\r\nX-Project-ID: bench\r\n"
                           "Client-ID: 3381af92-2b9e-11e3-b191-71861300734c\r\n";

size_t http_request(char *out, size_t room, const char *method_and_path, const char *body) {
    size_t len = (size_t)snprintf(out, room, HEAD, method_and_path);
    if (len < room && body != NULL) {
        len += (size_t)snprintf(out + len, room - len,
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                strlen(body), body);
    } else if (len < room) {
        len += (size_t)snprintf(out + len, room - len, "\r\n");
    }
    if (len >= room) die("a request is too long");
    return len;
}

void http_prepare(load *l, unsigned step, const char *method_and_path, const char *body) {
    const size_t room = strlen(body) + strlen(method_and_path) + 512;
    l->request[step] = malloc(room);
    if (l->request[step] == NULL) die("out of memory");
    l->request_len[step] = http_request(l->request[step], room, method_and_path, body);
}

bool is_status(const char *in, const char *status) {
    return strncmp(in, "HTTP/1.1 ", 9) == 0 && strncmp(in + 9, status, strlen(status)) == 0;
}

bool json_string(const char *json, const char *name, char out[ID_MAX]) {
    char key[48];
    (void)snprintf(key, sizeof key, "\"%s\"", name);
    const char *at = strstr(json, key);
    at = at != NULL ? strchr(at + strlen(key), '"') : NULL;
    const char *end = at != NULL ? strchr(at + 1, '"') : NULL;
    if (end == NULL || end - at > ID_MAX) return false;
    (void)snprintf(out, ID_MAX, "%.*s", (int)(end - at - 1), at + 1);
    return true;
}
