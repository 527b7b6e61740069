/* Unloads a plugin whose threads live on, and waits for their report: plugin_host PLUGIN HOSTS */

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    struct pollfd lost;
    void *plugin = count == 3 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *address = plugin ? dlsym(plugin, "plugin_holds") : NULL;
    int (*plugin_holds)(const char *);
    if (!address) {
        fprintf(stderr, "no plugin: %s\n", dlerror());
        return 1;
    }
    memcpy(&plugin_holds, &address, sizeof plugin_holds);
    lost.fd = plugin_holds(words[2]);
    lost.events = POLLIN;
    if (lost.fd < 0 || dlclose(plugin)) {
        fputs("the plugin does not hold the lock\n", stderr);
        return 1;
    }
    puts("unloaded");
    fflush(stdout);
    if (poll(&lost, 1, 20000) != 1) return 1;
    puts("told of the loss");
    return 0;
}
