/* What only a program of C has: the resolver of libc. (More: scenarios in Rust.) */

#define _GNU_SOURCE /* RTLD_NEXT */
#include "test.h"

#include <dlfcn.h>
#include <limits.h>
#include <netdb.h>
#include <stdatomic.h>

#define A_WHILE_MS 200

static atomic_int resolver_fails;

/* Takes the place of libc's, so that a name server can fail for a moment. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*usual)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&usual = dlsym(RTLD_NEXT, "getaddrinfo");
    return resolver_fails-- > 0 ? EAI_AGAIN : usual(name, service, hints, found);
}

TEST(a_name_server_that_fails_for_a_moment_is_asked_again) {
    zklock_client *client = NULL;
    zklock_options *options = options_with(0, A_WHILE_MS);
    char hosts[128];
    snprintf(hosts, sizeof hosts, "localhost%s", strchr(servers(), ':'));
    resolver_fails = INT_MAX;
    IS(zklock_client_new(hosts, options, &client), ZKLOCK_UNREACHABLE);
    SAYS("could be resolved within 200ms: check the resolver (localhost: ");
    /* Each side asks twice in vain: the one that connects, and the one that looks for what is wrong. */
    resolver_fails = 4;
    MADE(zklock_client, zklock_client_new(hosts, NULL, &made));
}

TEST_MAIN(STANDALONE)
