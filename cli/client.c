#include "client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { WHY_BYTES = 256, ANSWER_BYTES_MAX = 64 << 20 };

static size_t on_data(char *bytes, size_t size, size_t count, void *ctx) {
    rt_buf *answer = ctx;
    if (answer->len + size * count > ANSWER_BYTES_MAX) return 0;
    rt_buf_add(answer, (rt_str){.ptr = bytes, .len = size * count});
    return answer->failed ? 0 : size * count;
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value) {
    if (value == NULL) return list;
    rt_buf line = {0};
    rt_buf_addf(&line, "%s: %s", name, value);
    struct curl_slist *longer = line.failed ? NULL : curl_slist_append(list, line.ptr);
    rt_buf_deinit(&line);
    return longer == NULL ? list : longer;
}

static CURLcode perform(CURL *curl, const rt_cli *cli, const char *method, const char *path, const char *body,
                        rt_buf *answer, long *status) {
    rt_buf url = {0};
    rt_buf_addf(&url, "%s%s", cli->url, path);
    struct curl_slist *headers = add_header(NULL, "X-Project-ID", cli->project);
    headers = add_header(headers, "X-Auth-Token", cli->token);
    headers = add_header(headers, "Client-ID", "00000000-0000-4000-8000-00000000c711");
    headers = add_header(headers, "Content-Type", "application/json");
    headers = add_header(headers, "Expect", "");
    (void)curl_easy_setopt(curl, CURLOPT_URL, url.ptr);
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (body != NULL) (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 5L);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    const CURLcode code = url.failed ? CURLE_OUT_OF_MEMORY : curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    rt_buf_deinit(&url);
    return code;
}

/* Problem details have "detail", Zaqar's errors "description"; either may have only a title. */
static void explain(json_t *json, long status, char *why) {
    static const char *const KEYS[] = {"detail", "description", "title"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        const char *text = json_string_value(json_object_get(json, KEYS[i]));
        if (text == NULL) continue;
        const char *hint = status == 401 ? "; tokens are given by --token or $RETRYD_TOKEN" : "";
        (void)snprintf(why, WHY_BYTES, "%s (%ld)%s", text, status, hint);
        return;
    }
    (void)snprintf(why, WHY_BYTES, "the server answered %ld", status);
}

json_t *rt_cli_try(const rt_cli *cli, const char *method, const char *path, const json_t *body, char *why) {
    CURL *curl = curl_easy_init();
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    rt_buf answer = {0};
    long status = 0;
    json_t *json = NULL;
    if (curl == NULL || (body != NULL && text == NULL)) {
        (void)snprintf(why, WHY_BYTES, "out of memory");
    } else {
        const CURLcode code = perform(curl, cli, method, path, text, &answer, &status);
        if (code != CURLE_OK) {
            (void)snprintf(why, WHY_BYTES, "cannot reach %s: %s (--url, $RETRYD_URL)", cli->url, curl_easy_strerror(code));
        } else if (answer.len == 0) {
            if (status < 300) json = json_null();
            else explain(NULL, status, why);
        } else {
            json = json_loadb(answer.ptr, answer.len, JSON_DECODE_ANY, NULL);
            if (json == NULL || status >= 400) {
                explain(json, status, why);
                json_decref(json);
                json = NULL;
            }
        }
    }
    rt_buf_deinit(&answer);
    free(text);
    curl_easy_cleanup(curl);
    return json;
}

json_t *rt_cli_call(const rt_cli *cli, const char *method, const char *path, const json_t *body) {
    char why[WHY_BYTES] = "";
    json_t *json = rt_cli_try(cli, method, path, body, why);
    if (json == NULL) (void)fprintf(stderr, "retryctl: %s\n", why);
    return json;
}

bool rt_cli_lines(const rt_cli *cli, const char *path, FILE *out, char next[RT_CLI_MARKER_BYTES]) {
    CURL *curl = curl_easy_init();
    rt_buf answer = {0};
    long status = 0;
    char why[WHY_BYTES] = "out of memory";
    next[0] = '\0';
    const CURLcode code = curl == NULL ? CURLE_FAILED_INIT : perform(curl, cli, "GET", path, NULL, &answer, &status);
    const bool done = code == CURLE_OK && status == 200;
    struct curl_header *header;
    if (done) {
        (void)fwrite(answer.ptr == NULL ? "" : answer.ptr, 1, answer.len, out);
        if (curl_easy_header(curl, "Retryd-Next", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
            (void)snprintf(next, RT_CLI_MARKER_BYTES, "%s", header->value);
    } else if (code != CURLE_OK) {
        (void)snprintf(why, sizeof why, "cannot reach %s: %s (--url, $RETRYD_URL)", cli->url, curl_easy_strerror(code));
    } else {
        json_t *json = json_loadb(answer.ptr == NULL ? "" : answer.ptr, answer.len, 0, NULL);
        explain(json, status, why);
        json_decref(json);
    }
    if (!done) (void)fprintf(stderr, "retryctl: %s\n", why);
    rt_buf_deinit(&answer);
    curl_easy_cleanup(curl);
    return done;
}

void rt_cli_segment(char *out, size_t size, const char *segment) {
    char *encoded = curl_easy_escape(NULL, segment, 0);
    (void)snprintf(out, size, "%s", encoded == NULL ? "" : encoded);
    curl_free(encoded);
}

void rt_cli_arg(char *path, size_t size, const char *name, const char *value) {
    if (value == NULL) return;
    char *encoded = curl_easy_escape(NULL, value, 0);
    const size_t used = strlen(path);
    (void)snprintf(path + used, size - used, "%c%s=%s", strchr(path, '?') == NULL ? '?' : '&', name,
                   encoded == NULL ? "" : encoded);
    curl_free(encoded);
}
