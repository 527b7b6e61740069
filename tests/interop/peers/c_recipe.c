/* A stand-in for ZooKeeper's own lock recipe in C, which no package brings: CONNECT KIND PATH SESSION_MS REGISTER NAME
 *
 * It names its nodes as that does, by the session, and takes the part of a name after the last `-` for its number, compared as
 * text. So a session can have only one lock, and a name without `-` would crash the original. */

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

#include "line.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* The session's state, whether it was ever in doubt, and the number of events about the predecessor. */
static int state, is_uncertain, heard;

static void watcher(zhandle_t *zk, int type, int new_state, const char *path, void *context) {
    (void)zk, (void)path, (void)context;
    pthread_mutex_lock(&mutex);
    if (type == ZOO_SESSION_EVENT) state = new_state;
    if (new_state != ZOO_CONNECTED_STATE) is_uncertain = 1;
    heard++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Waits, for a second at most, until an event comes after `before`. */
static void wait_after(int before) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 1;
    pthread_mutex_lock(&mutex);
    while (heard == before && pthread_cond_timedwait(&changed, &mutex, &end) != ETIMEDOUT) {}
    pthread_mutex_unlock(&mutex);
}

static int heard_so_far(void) {
    int count;
    pthread_mutex_lock(&mutex);
    count = heard;
    pthread_mutex_unlock(&mutex);
    return count;
}

static zhandle_t *session_of(const char *hosts, int timeout) {
    zhandle_t *zk = zookeeper_init(hosts, watcher, timeout, NULL, NULL, 0);
    if (!zk) line_failed("zookeeper_init");
    while (zoo_state(zk) != ZOO_CONNECTED_STATE) wait_after(heard_so_far());
    pthread_mutex_lock(&mutex);
    is_uncertain = 0;
    pthread_mutex_unlock(&mutex);
    return zk;
}

static const char *number_of(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash ? dash + 1 : "";
}

/* The node just before ours, or "" if there is none. */
static int predecessor(zhandle_t *zk, const char *path, const char *own, char *found, size_t size) {
    struct String_vector children;
    const char *nearest = "";
    int index, code = zoo_get_children(zk, path, 0, &children);
    if (code != ZOK) return code;
    for (index = 0; index < children.count; index++) {
        const char *name = children.data[index];
        if (strcmp(number_of(name), number_of(own)) < 0 &&
            (!*nearest || strcmp(number_of(name), number_of(nearest)) > 0))
            nearest = name;
    }
    snprintf(found, size, "%s", nearest);
    deallocate_String_vector(&children);
    return ZOK;
}

/* Queues, and waits until nobody is ahead. */
static int acquire(zhandle_t *zk, const char *path, char *own, size_t size) {
    char prefix[512], before[256], watched[1024];
    int code;
    snprintf(prefix, sizeof prefix, "%s/x-%016llx-", path, (unsigned long long)zoo_client_id(zk)->client_id);
    code = zoo_create(zk, prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, own, (int)size);
    while (code == ZOK) {
        const int so_far = heard_so_far();
        code = predecessor(zk, path, strrchr(own, '/') + 1, before, sizeof before);
        if (code != ZOK || !*before) return code;
        snprintf(watched, sizeof watched, "%s/%s", path, before);
        code = zoo_wexists(zk, watched, watcher, NULL, NULL);
        if (code == ZOK) wait_after(so_far);
        if (code == ZNONODE) code = ZOK;
    }
    return code;
}

static int turn(zhandle_t *zk, const char *path) {
    char own[512];
    int goes_on, is_lost, code = acquire(zk, path, own, sizeof own);
    if (code != ZOK) {
        line_tell("note", zerror(code));
        return 1;
    }
    line_enter("x", own, 0);
    pthread_mutex_lock(&mutex);
    is_lost = is_uncertain;
    pthread_mutex_unlock(&mutex);
    goes_on = is_lost ? line_ask("lost", "connection") : line_ask("leave", "");
    if (zoo_delete(zk, own, -1) != ZOK) {
        pthread_mutex_lock(&mutex);
        is_uncertain = 1;
        pthread_mutex_unlock(&mutex);
    }
    return goes_on;
}

int main(int count, char **words) {
    zhandle_t *zk;
    int goes_on;
    if (count != 7 || strcmp(words[2], "mutex") != 0) return 2;
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    line_open(words[5], words[6]);
    zk = session_of(words[1], atoi(words[4]));
    goes_on = line_ask("hello", "");
    while (goes_on) {
        goes_on = turn(zk, words[3]);
        /* The end of the session removes a node that could not be deleted. */
        if (is_uncertain) {
            zookeeper_close(zk);
            zk = session_of(words[1], atoi(words[4]));
        }
    }
    return zookeeper_close(zk) != ZOK;
}
