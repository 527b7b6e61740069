/* The calls that make a client or ask it something: a part of calls.h. */

CALL(client_new) {
    zklock_client *client;
    zklock_status status = zklock_client_new(on->hosts, NULL, &client);
    if (!status) zklock_client_free(client);
    return status;
}
/* A guard that works would start a process, so this one fails. */
CALL(client_guard) { return zklock_client_guard(on->client, "/nowhere/zklock"); }
CALL(client_stats) {
    zklock_stats stats;
    return zklock_client_stats(on->client, &stats);
}
CALL(client_histogram) {
    size_t length;
    double sum;
    return zklock_client_histogram(on->client, ZKLOCK_HISTOGRAM_HOLD_TIME, NULL, 0, &length, &sum);
}
CALL(client_prometheus) {
    size_t length;
    return zklock_client_prometheus(on->client, NULL, 0, &length);
}
CALL(client_fd) {
    int descriptor;
    return zklock_client_fd(on->client, &descriptor);
}
/* It is chance whether an event has come by then. */
CALL(client_next_event) {
    zklock_event event;
    zklock_status status = zklock_client_next_event(on->client, &event);
    return status == ZKLOCK_PENDING ? ZKLOCK_OK : status;
}
