#include "engine/common/command.h"

void rt_command_list_push(rt_command_list *l, rt_command *cmd) {
    cmd->next = NULL;
    if (l->last != NULL) l->last->next = cmd;
    else l->first = cmd;
    l->last = cmd;
    l->count++;
}

rt_command *rt_command_list_pop(rt_command_list *l) {
    rt_command *cmd = l->first;
    if (cmd == NULL) return NULL;
    l->first = cmd->next;
    if (l->first == NULL) l->last = NULL;
    l->count--;
    cmd->next = NULL;
    return cmd;
}

void rt_command_list_put_back(rt_command_list *l, rt_command_list *first) {
    if (first->count == 0) return;
    first->last->next = l->first;
    if (l->first == NULL) l->last = first->last;
    l->first = first->first;
    l->count += first->count;
    *first = (rt_command_list){0};
}
