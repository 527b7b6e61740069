// cc fenced_postgresql.c -o fenced_postgresql $(pkg-config --cflags --libs zklock libpq)
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>
#include <zklock.h>

static int pay(zklock_client *client, zklock_hold *hold, PGconn *database) {
    const char *raise, *values[3];
    char ensemble[65], token[24];
    size_t length;
    if (zklock_fence_sql(ZKLOCK_DATABASE_POSTGRESQL, ZKLOCK_FENCE_RAISE, &raise) ||
        zklock_client_ensemble_id(client, ensemble, sizeof ensemble - 1, &length))
        return fprintf(stderr, "%s\n", zklock_last_error()), 1;
    ensemble[length] = '\0';
    snprintf(token, sizeof token, "%" PRIu64, zklock_hold_token(hold));
    values[0] = zklock_hold_path(hold), values[1] = ensemble, values[2] = token;
    PQclear(PQexec(database, "BEGIN"));
    PGresult *raised = PQexecParams(database, raise, 3, NULL, values, NULL, NULL, 0);
    int is_ours = !strcmp(PQcmdTuples(raised), "1");
    if (!is_ours) fprintf(stderr, "refused, a later holder has written: %s\n", PQerrorMessage(database));
    PQclear(raised);
    if (is_ours) PQclear(PQexec(database, "UPDATE account SET amount = amount + 10 WHERE name = 'anna'"));
    PGresult *ended = PQexec(database, is_ours ? "COMMIT" : "ROLLBACK");
    is_ours = is_ours && !strcmp(PQcmdStatus(ended), "COMMIT");
    PQclear(ended);
    return !is_ours;
}

int main(void) {
    zklock_client *client = NULL;
    zklock_lock *lock = NULL;
    zklock_hold *hold = NULL;
    PGconn *database = PQconnectdb("dbname=shop");
    int failed = 1;
    if (PQstatus(database) != CONNECTION_OK)
        fprintf(stderr, "%s", PQerrorMessage(database));
    else if (zklock_client_new("127.0.0.1:2181", NULL, &client) ||
             zklock_mutex_new(client, "/locks/account", NULL, &lock) || zklock_acquire(lock, 5000, &hold))
        fprintf(stderr, "%s\n", zklock_last_error());
    else
        failed = pay(client, hold, database);
    zklock_hold_free(hold);
    zklock_lock_free(lock);
    zklock_client_close(client);
    zklock_client_free(client);
    PQfinish(database);
    return failed;
}
