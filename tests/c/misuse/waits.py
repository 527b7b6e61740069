"""Waits of the misuse matrix: their timeouts, and their results."""

FOR_EVER = ["-1"]
LATE = ["INT64_MIN", "INT64_MIN + 1", "INT32_MIN", "-99", "-2"]
LONG = ["INT32_MAX", "UINT32_MAX", "INT64_MAX / 1000", "INT64_MAX - 1", "INT64_MAX"]


def begun(name):
    """Functions that only start a wait."""
    return [(name, state, FOR_EVER + LONG + ["0"], "ZKLOCK_OK") for state in ("LIVE", "BUSY")]


WAITS = {
    "zklock_acquire": [
        ("lock", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("lock", "BUSY", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_acquire_start": begun("lock"),
    "zklock_hold_wait_lost": [
        ("hold", "CLOSED", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("hold", "LIVE", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_hold_wait_wanted": [
        ("hold", "WANTED", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("hold", "LIVE", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_observer_next": [
        ("observer", "LIVE", FOR_EVER + LONG, "ZKLOCK_OK"),
        ("observer", "LIVE", ["0"], "ZKLOCK_TIMEOUT"),
        ("observer", "TOLD", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_barrier_wait": [
        ("barrier", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("barrier", "BUSY", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_double_barrier_enter": [
        ("double_barrier", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("double_barrier", "BUSY", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_job_begin": [
        ("job", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("job", "BUSY", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_job_begin_start": begun("job"),
    "zklock_member_leave": [
        ("member", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK"),
        ("member", "BUSY", ["0", "1"], "ZKLOCK_TIMEOUT"),
    ],
    "zklock_barrier_wait_start": begun("barrier"),
    "zklock_double_barrier_enter_start": begun("double_barrier"),
    "zklock_member_leave_start": begun("member"),
    "zklock_client_connect": [("client", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK")],
    "zklock_client_connect_start": [("client", "LIVE", FOR_EVER + LONG + ["0"], "ZKLOCK_OK")],
}
