/* Helpers for a client's events. */

#ifndef ZKLOCK_TEST_EVENTS_H
#define ZKLOCK_TEST_EVENTS_H

#include "test.h"

static inline int descriptor_of(zklock_client *client) {
    int descriptor;
    OK(zklock_client_fd(client, &descriptor));
    return descriptor;
}

/* The next event, which must come soon. Fields that do not belong to its kind are NULL. */
static inline zklock_event next(zklock_client *client) {
    static const uint32_t nothing[7];
    zklock_event event;
    memset(&event, 0xA5, sizeof event);
    CHECK(readable(descriptor_of(client), SOON_MS));
    OK(zklock_client_next_event(client, &event));
    int is_of_hold = event.kind == ZKLOCK_EVENT_LOST || event.kind == ZKLOCK_EVENT_WANTED;
    CHECK(!event.call == (event.kind != ZKLOCK_EVENT_CALL));
    CHECK(!event.observer == (event.kind != ZKLOCK_EVENT_LEADER));
    if (event.kind != ZKLOCK_EVENT_CALL) CHECK(!event.hold == !is_of_hold);
    if (event.kind >= ZKLOCK_EVENT_LEADER) CHECK(!event.context);
    CHECK(!memcmp(event.reserved, nothing, sizeof nothing));
    return event;
}

static inline zklock_event expect(zklock_client *client, zklock_event_kind kind) {
    zklock_event event = next(client);
    if (event.kind != kind) failed(__FILE__, __LINE__, "event %d, not %d", (int)event.kind, (int)kind);
    return event;
}

/* Checks that there is no event, and that the descriptor is not readable. */
static inline void is_quiet(zklock_client *client, int64_t milliseconds) {
    zklock_event event = {.kind = (zklock_event_kind)-7};
    CHECK(!readable(descriptor_of(client), milliseconds));
    IS(zklock_client_next_event(client, &event), ZKLOCK_PENDING);
    CHECK((int)event.kind == -7);
}

/* Asks for the client's events from now on. */
static inline zklock_client *follow(zklock_client *client) {
    expect(client, ZKLOCK_EVENT_CONNECTED);
    is_quiet(client, 0);
    return client;
}

#endif
