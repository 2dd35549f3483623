/* commands.h: what retryctl can do, one file a noun. Each returns the exit status: 0 done, 1 refused or
 * unreachable, 2 usage. */
#ifndef RT_CLI_COMMANDS_H
#define RT_CLI_COMMANDS_H
#include "client.h"

typedef int rt_cli_command(const rt_cli *cli, int argc, char **argv); /* argv: what stands behind the command's words */

/* Prints the answer as JSON if asked for, and releases it. True: it did. */
bool rt_cli_print_json(const rt_cli *cli, json_t *answer);

/* queues.c */
rt_cli_command rt_cli_status, rt_cli_queues, rt_cli_pause, rt_cli_resume, rt_cli_subscriptions, rt_cli_messages, rt_cli_post;
/* jobs.c */
rt_cli_command rt_cli_job, rt_cli_attempts, rt_cli_job_delete;
/* dead.c */
rt_cli_command rt_cli_dead_list, rt_cli_dead_count, rt_cli_dead_sample, rt_cli_dead_export, rt_cli_dead_redrive,
    rt_cli_dead_delete;
/* events.c */
rt_cli_command rt_cli_event_types, rt_cli_event_type_show, rt_cli_event_type_put, rt_cli_event_type_delete,
    rt_cli_events_list, rt_cli_events_schedule, rt_cli_circuit_open, rt_cli_circuit_close, rt_cli_circuit_auto;
/* plugin.c */
rt_cli_command rt_cli_plugin_check;
/* policy.c */
rt_cli_command rt_cli_policy_show;
/* work.c */
rt_cli_command rt_cli_work, rt_cli_sessions, rt_cli_backoffs, rt_cli_backoffs_clear, rt_cli_history, rt_cli_entity;
/* orders.c */
rt_cli_command rt_cli_orders, rt_cli_order, rt_cli_order_retries, rt_cli_order_wake, rt_cli_order_delete;
rt_cli_command rt_cli_order_types, rt_cli_order_type_put, rt_cli_order_type_delete, rt_cli_locks;
/* migrate.c */
rt_cli_command rt_cli_migrate_store; /* options that are retryd's go to it as they are */
/* watch.c */
rt_cli_command rt_cli_watch;

#endif
