/* host.h: the child: one process that has one plugin and does one call at a time. What happens in it is the
 * plugin's doing; the server only ever sees frames, lines and how it ended. */
#ifndef RT_EXECUTOR_PLUGIN_HOST_H
#define RT_EXECUTOR_PLUGIN_HOST_H

/* The descriptor of the socket to the server in a child. */
enum { RT_PLUGIN_HOST_FD = 3, RT_PLUGIN_HOST_ARGS = 2 };

/* The whole life of a child; argv: the plugin's name and its file. Returns the exit status: 0 when the server
 * has hung up, 1 when the plugin could not be used, 2 when it was not started by a server. A program that
 * uses the plugin executor calls this when its own first argument is RT_PLUGIN_HOST_COMMAND. */
#define RT_PLUGIN_HOST_COMMAND "plugin-host"
int rt_plugin_host(int argc, char **argv);

#endif
