/* The enums of zklock.h, as C++ has them. Each value is that of C, whose comment in zklock.h says more. */

#ifndef ZKLOCK_ENUMS_HPP
#define ZKLOCK_ENUMS_HPP

#if __cplusplus < 201703L
#error "zklock.hpp needs C++17 or later: compile with -std=c++17. With older C++, use zklock.h, the C interface."
#endif

#include <cstdint>

#include "../zklock.h"

namespace zklock {

/** Why a call failed: see zklock_status. */
enum class status : std::int32_t {
    ok = ZKLOCK_OK,
    invalid_argument = ZKLOCK_INVALID_ARGUMENT,
    invalid_handle = ZKLOCK_INVALID_HANDLE,
    unreachable = ZKLOCK_UNREACHABLE,
    timeout = ZKLOCK_TIMEOUT,
    deadlock = ZKLOCK_DEADLOCK,
    not_owner = ZKLOCK_NOT_OWNER,
    not_held = ZKLOCK_NOT_HELD,
    lost = ZKLOCK_LOST,
    foreign_contender = ZKLOCK_FOREIGN_CONTENDER,
    refused = ZKLOCK_REFUSED,
    closed = ZKLOCK_CLOSED,
    interrupted = ZKLOCK_INTERRUPTED,
    uncertain = ZKLOCK_UNCERTAIN,
    conflict = ZKLOCK_CONFLICT,
    forked = ZKLOCK_FORKED,
    pending = ZKLOCK_PENDING,
    internal = ZKLOCK_INTERNAL,
    at_risk = ZKLOCK_AT_RISK,
    stale_token = ZKLOCK_STALE_TOKEN,
    other_ensemble = ZKLOCK_OTHER_ENSEMBLE,
    done = ZKLOCK_DONE,
};

/** The state of a hold: see zklock_state. */
enum class state : std::int32_t {
    held = ZKLOCK_STATE_HELD,         ///< The servers have confirmed it recently.
    at_risk = ZKLOCK_STATE_AT_RISK,   ///< It is held for as long as valid_for() says.
    lost = ZKLOCK_STATE_LOST,         ///< Others may hold the lock. This is final.
    released = ZKLOCK_STATE_RELEASED, ///< It was released.
};

/** Why a hold was lost: see zklock_reason. */
enum class reason : std::int32_t {
    none = ZKLOCK_REASON_NONE, ///< It is not lost.
    session_expired = ZKLOCK_REASON_SESSION_EXPIRED,
    node_deleted = ZKLOCK_REASON_NODE_DELETED,
    lease_lapsed = ZKLOCK_REASON_LEASE_LAPSED,
    client_closed = ZKLOCK_REASON_CLIENT_CLOSED,
    other = ZKLOCK_REASON_OTHER,
    foreign_contender = ZKLOCK_REASON_FOREIGN_CONTENDER,
    session_closed = ZKLOCK_REASON_SESSION_CLOSED,
};

/** What has happened to a client: see zklock_event_kind. Later versions may add kinds: ignore any that you do not know. */
enum class event_kind : std::int32_t {
    call = ZKLOCK_EVENT_CALL,     ///< An async_call has its result.
    lost = ZKLOCK_EVENT_LOST,     ///< A hold is lost.
    wanted = ZKLOCK_EVENT_WANTED, ///< Others are waiting for what a hold has.
    leader = ZKLOCK_EVENT_LEADER, ///< An observer has a new holder or leader.
    connected = ZKLOCK_EVENT_CONNECTED,
    disconnected = ZKLOCK_EVENT_DISCONNECTED,
    session_lost = ZKLOCK_EVENT_SESSION_LOST,
    closed = ZKLOCK_EVENT_CLOSED,
};

/** What a contender wants: see zklock_role. */
enum class role : std::int32_t {
    exclusive = ZKLOCK_ROLE_EXCLUSIVE,
    read = ZKLOCK_ROLE_READ,
    write = ZKLOCK_ROLE_WRITE,
};

/** How a run of a job ended: see zklock_run_outcome. */
enum class run_outcome : std::int32_t {
    never = ZKLOCK_RUN_NEVER,     ///< The job has never run.
    running = ZKLOCK_RUN_RUNNING, ///< The end is not recorded: it has not come, or the process died or lost the lock.
    done = ZKLOCK_RUN_DONE,
    failed = ZKLOCK_RUN_FAILED,
};

/** The databases that fence_sql() has statements for: see zklock_database. */
enum class database : std::int32_t {
    postgresql = ZKLOCK_DATABASE_POSTGRESQL,
    mariadb = ZKLOCK_DATABASE_MARIADB,
    sqlite = ZKLOCK_DATABASE_SQLITE,
};

/** The statements of fence_sql(): see zklock_fence_statement. */
enum class fence_statement : std::int32_t {
    create_table = ZKLOCK_FENCE_CREATE_TABLE,
    raise = ZKLOCK_FENCE_RAISE,
    look = ZKLOCK_FENCE_LOOK,
};

/** What client::histogram() can show: see zklock_histogram. */
enum class measure : std::int32_t {
    acquire_wait = ZKLOCK_HISTOGRAM_ACQUIRE_WAIT,
    hold_time = ZKLOCK_HISTOGRAM_HOLD_TIME,
    heartbeat_lag = ZKLOCK_HISTOGRAM_HEARTBEAT_LAG,
    queue_length = ZKLOCK_HISTOGRAM_QUEUE_LENGTH,
};

/** As the version in a guarded write: the node may have any version. */
inline constexpr std::int32_t any_version = ZKLOCK_ANY_VERSION;
/** In place of a node's version: the node does not exist. */
inline constexpr std::int32_t no_node = ZKLOCK_NO_NODE;
} // namespace zklock

#endif // ZKLOCK_ENUMS_HPP
