/* ZooKeeper's own C client on a server: all its calls must work, with the right results.
 *
 *   zookeeper_client HOSTS
 *
 * Prints a line for each check that succeeds. When it prints `cut me`, the test must cut its connection and send it a
 * line. It then checks that its session and its watches outlive that.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int state, connects;
static struct { int type; char path[256]; } events[64];
static int count_of_events;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

static void watcher(zhandle_t *handle, int type, int new_state, const char *path, void *context) {
    (void)handle, (void)context;
    pthread_mutex_lock(&mutex);
    if (type == ZOO_SESSION_EVENT) {
        state = new_state;
        connects += new_state == ZOO_CONNECTED_STATE;
    } else {
        CHECK(count_of_events < 64);
        events[count_of_events].type = type;
        snprintf(events[count_of_events++].path, sizeof events->path, "%s", path);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Waits, for 20 s at most, until a counter has reached a number. */
static void wait_for(const int *counter, int number) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 20;
    pthread_mutex_lock(&mutex);
    while (*counter < number) CHECK(pthread_cond_timedwait(&changed, &mutex, &end) == 0);
    pthread_mutex_unlock(&mutex);
}

static void expect_event(int type, const char *path) {
    static int seen;
    wait_for(&count_of_events, seen + 1);
    CHECK(events[seen].type == type && strcmp(events[seen].path, path) == 0);
    seen++;
}

static void nodes(zhandle_t *zk) {
    char name[256], data[64];
    struct Stat stat;
    int length = sizeof data;
    CHECK(zoo_create(zk, "/c", "one", 3, &ZOO_OPEN_ACL_UNSAFE, 0, name, sizeof name) == ZOK && !strcmp(name, "/c"));
    CHECK(zoo_create(zk, "/c", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNODEEXISTS);
    CHECK(zoo_create(zk, "/no/parent", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNONODE);
    CHECK(zoo_create(zk, "/c/e-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, name, sizeof name) == ZOK);
    CHECK(strcmp(name, "/c/e-0000000000") == 0);
    CHECK(zoo_create(zk, "/c/e-0000000000/x", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZNOCHILDRENFOREPHEMERALS);
    CHECK(zoo_exists(zk, name, 0, &stat) == ZOK && stat.ephemeralOwner == zoo_client_id(zk)->client_id);
    CHECK(zoo_set(zk, "/c", "two", 3, 7) == ZBADVERSION && zoo_set(zk, "/c", "two", 3, 0) == ZOK);
    CHECK(zoo_get(zk, "/c", 0, data, &length, &stat) == ZOK && length == 3 && !memcmp(data, "two", 3));
    CHECK(stat.version == 1 && stat.numChildren == 1 && stat.mzxid > stat.czxid);
    CHECK(zoo_delete(zk, "/c", -1) == ZNOTEMPTY);
    puts("nodes");
}

static void watches(zhandle_t *zk) {
    struct String_vector children;
    struct Stat stat;
    char data[64];
    int length = sizeof data;
    CHECK(zoo_get(zk, "/c", 1, data, &length, NULL) == ZOK);
    CHECK(zoo_get_children(zk, "/c", 1, &children) == ZOK && children.count == 1);
    deallocate_String_vector(&children);
    CHECK(zoo_exists(zk, "/c/later", 1, &stat) == ZNONODE);
    CHECK(zoo_set(zk, "/c", "three", 5, -1) == ZOK);
    expect_event(ZOO_CHANGED_EVENT, "/c");
    CHECK(zoo_create(zk, "/c/later", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0) == ZOK);
    expect_event(ZOO_CREATED_EVENT, "/c/later");
    expect_event(ZOO_CHILD_EVENT, "/c");
    CHECK(zoo_delete(zk, "/c/later", -1) == ZOK);
    puts("watches");
}

static void transactions(zhandle_t *zk) {
    zoo_op_t operations[3];
    zoo_op_result_t results[3];
    char name[256];
    struct Stat stat;
    zoo_create_op_init(&operations[0], "/c/all", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, name, sizeof name);
    zoo_set_op_init(&operations[1], "/c", "four", 4, -1, &stat);
    zoo_check_op_init(&operations[2], "/c/none", -1);
    CHECK(zoo_multi(zk, 3, operations, results) == ZNONODE);
    CHECK(results[0].err == ZOK && results[2].err == ZNONODE && zoo_exists(zk, "/c/all", 0, NULL) == ZNONODE);
    zoo_delete_op_init(&operations[2], "/c/all", 0);
    CHECK(zoo_multi(zk, 3, operations, results) == ZOK && !strcmp(name, "/c/all") && stat.dataLength == 4);
    CHECK(zoo_exists(zk, "/c/all", 0, NULL) == ZNONODE);
    puts("transactions");
}

static void told(int code, const void *data) {
    pthread_mutex_lock(&mutex);
    *(int *)data = code == ZOK ? 1 : code;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void access_lists(zhandle_t *zk, const char *hosts) {
    static int is_known;
    struct ACL_vector list;
    struct Stat stat;
    char data[8];
    int length = sizeof data;
    CHECK(zoo_add_auth(zk, "digest", "user:secret", 11, told, &is_known) == ZOK);
    wait_for(&is_known, 1);
    CHECK(zoo_create(zk, "/c/private", "", 0, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0) == ZOK);
    CHECK(zoo_get_acl(zk, "/c/private", &list, &stat) == ZOK && list.count == 1);
    CHECK(!strcmp(list.data->id.scheme, "digest") && !strncmp(list.data->id.id, "user:", 5));
    deallocate_ACL_vector(&list);
    zhandle_t *stranger = zookeeper_init(hosts, watcher, 10000, NULL, NULL, 0);
    CHECK(stranger != NULL);
    wait_for(&connects, 2);
    CHECK(zoo_get(stranger, "/c/private", 0, data, &length, NULL) == ZNOAUTH);
    CHECK(zoo_set_acl(stranger, "/c/private", -1, &ZOO_OPEN_ACL_UNSAFE) == ZNOAUTH);
    CHECK(zookeeper_close(stranger) == ZOK);
    CHECK(zoo_set_acl(zk, "/c/private", -1, &ZOO_OPEN_ACL_UNSAFE) == ZOK && zoo_delete(zk, "/c/private", -1) == ZOK);
    puts("access lists");
}

static void reconnect(zhandle_t *zk) {
    char line[16], data[64];
    int length = sizeof data, before = connects;
    long long session = zoo_client_id(zk)->client_id;
    CHECK(zoo_get(zk, "/c", 1, data, &length, NULL) == ZOK);
    puts("cut me");
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    wait_for(&connects, before + 1);
    CHECK(zoo_client_id(zk)->client_id == session && zoo_exists(zk, "/c/e-0000000000", 0, NULL) == ZOK);
    CHECK(zoo_set(zk, "/c", "five", 4, -1) == ZOK);
    expect_event(ZOO_CHANGED_EVENT, "/c");
    puts("reconnect");
}

int main(int count, char **words) {
    CHECK(count == 2);
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zk = zookeeper_init(words[1], watcher, 10000, NULL, NULL, 0);
    CHECK(zk != NULL);
    wait_for(&connects, 1);
    nodes(zk);
    watches(zk);
    transactions(zk);
    access_lists(zk, words[1]);
    reconnect(zk);
    CHECK(zookeeper_close(zk) == ZOK);
    puts("closed");
    return 0;
}
