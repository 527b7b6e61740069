/* A plug-in that uses the library in its constructor, which it should not, in the ways that the environment names. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zklock.h>

zklock_status plugin_status = ZKLOCK_OK;
char plugin_said[512];

__attribute__((constructor)) static void loaded(void) {
    const char *hosts = getenv("PLUGIN_HOSTS"), *pipes = getenv("PLUGIN_PIPES");
    int says, hears;
    char byte = 0;
    if (hosts) {
        zklock_options *options;
        zklock_client *client;
        if (zklock_options_new(&options)) abort();
        if (zklock_options_set(options, "connect-timeout", "1s")) abort();
        plugin_status = zklock_client_new(hosts, options, &client);
        snprintf(plugin_said, sizeof plugin_said, "%s", zklock_last_error());
        if (!plugin_status) zklock_client_free(client);
        zklock_options_free(options);
    }
    if (pipes) {
        if (sscanf(pipes, "%d %d", &says, &hears) != 2) abort();
        if (write(says, &byte, 1) != 1 || read(hears, &byte, 1) != 1) abort();
    }
}
