#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "commands.h"
#include "explain.h"

enum { PATH_BYTES = 2048, PLACE_BYTES = 512 };

/* An object counts, an empty one too (all defaults); anything else means "none". */
static const json_t *policy_in(const json_t *object) {
    const json_t *policy = json_object_get(object, "_retry_policy");
    return json_is_object(policy) ? policy : NULL;
}

/* Which policy governs: the same rule as the engine's rt_delivery_policy_of. */
static const json_t *governing(const json_t *metadata, const json_t *subscription, const char **whose) {
    const json_t *of_queue = policy_in(metadata);
    const json_t *own = policy_in(json_object_get(subscription, "options"));
    const bool ignore = json_is_true(json_object_get(of_queue, "ignore_subscription_override"));
    *whose = of_queue != NULL && (ignore || own == NULL) ? "the queue's"
             : own != NULL                               ? "the subscription's"
                                                         : "the default";
    return of_queue != NULL && (ignore || own == NULL) ? of_queue : own;
}

static int explain(const rt_cli *cli, const json_t *policy, const char *whose) {
    char *text = policy == NULL ? rt_str_dup(RT_STR("{}")) : json_dumps(policy, JSON_COMPACT);
    if (text == NULL) return 1;
    char json[] = "--json";
    char *args[] = {text, json};
    if (!cli->json) (void)printf("Governed by %s policy: %s\n", whose, text);
    const int status = rt_explain_policy(cli->json ? 2 : 1, args);
    free(text);
    return status;
}

int rt_cli_policy_show(const rt_cli *cli, int argc, char **argv) {
    char queue[PLACE_BYTES];
    char id[PLACE_BYTES];
    char path[PATH_BYTES];
    if (argc < 1 || argc > 2) return 2;
    rt_cli_segment(queue, sizeof queue, argv[0]);
    (void)snprintf(path, sizeof path, "/v2/queues/%s", queue);
    json_t *metadata = rt_cli_call(cli, "GET", path, NULL);
    if (metadata == NULL) return 1;
    json_t *subscription = NULL;
    if (argc == 2) {
        rt_cli_segment(id, sizeof id, argv[1]);
        (void)snprintf(path, sizeof path, "/v2/queues/%s/subscriptions/%s", queue, id);
        subscription = rt_cli_call(cli, "GET", path, NULL);
    }
    int status = 1;
    if (argc == 1 || subscription != NULL) {
        const char *whose;
        const json_t *policy = governing(metadata, subscription, &whose);
        status = explain(cli, policy, whose);
    }
    json_decref(subscription);
    json_decref(metadata);
    return status;
}
