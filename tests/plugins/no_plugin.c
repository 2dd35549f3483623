/* A shared object that is none of ours. */
int no_plugin_at_all(void);
int no_plugin_at_all(void) { return 0; }
