//! What a client has counted: figures, distributions, and both as text for Prometheus.

use crate::c_enum::c_enum;
use crate::call;
use crate::client::{Client, zklock_client};
use crate::convert::{unsigned, whole};
use crate::failure::Failure;
use crate::handle::Object;
use crate::loss::zklock_reason;
use crate::raw::{out, outs};
use crate::status::zklock_status;
use std::ffi::c_void;
use zklock_core::{AcquireOutcome, LossReason, Stats};

c_enum! {
    /// The figures that zklock_client_stat can give.
    pub enum zklock_stat {
        /// Sessions opened so far.
        ZKLOCK_STAT_SESSIONS = 1,
        /// Locks granted so far.
        ZKLOCK_STAT_GRANTS = 2,
        /// Holds lost so far.
        ZKLOCK_STAT_LOSSES = 3,
        /// Attempts whose caller already has an answer, but whose node may still exist. It is being
        /// deleted.
        ZKLOCK_STAT_OWED = 4,
        /// The number of the session, as the servers print it in their logs; 0 if there is no
        /// session.
        ZKLOCK_STAT_SESSION_ID = 5,
        /// The session timeout that the servers granted, in milliseconds; 0 if there is no session.
        ZKLOCK_STAT_SESSION_TIMEOUT = 6,
        /// How often a session got a new connection because the previous one broke.
        ZKLOCK_STAT_RECONNECTS = 7,
        /// Calls to acquire a lock that were given a hold.
        ZKLOCK_STAT_ACQUIRES_GRANTED = 8,
        /// Calls to acquire a lock that were not to wait, and found the lock busy.
        ZKLOCK_STAT_ACQUIRES_BUSY = 9,
        /// Calls to acquire a lock that waited until their timeout because others had the lock.
        ZKLOCK_STAT_ACQUIRES_TIMED_OUT = 10,
        /// Calls to acquire a lock that failed with any other error.
        ZKLOCK_STAT_ACQUIRES_FAILED = 11,
        /// Calls to acquire a lock that were cancelled, or whose zklock_call was freed.
        ZKLOCK_STAT_ACQUIRES_CANCELLED = 12,
        /// Holds lost for ZKLOCK_REASON_SESSION_EXPIRED. Each zklock_reason has such a figure: its
        /// number is that of the reason plus 100.
        ZKLOCK_STAT_LOSSES_SESSION_EXPIRED = 101,
        /// Holds lost for ZKLOCK_REASON_NODE_DELETED.
        ZKLOCK_STAT_LOSSES_NODE_DELETED = 102,
        /// Holds lost for ZKLOCK_REASON_LEASE_LAPSED.
        ZKLOCK_STAT_LOSSES_LEASE_LAPSED = 103,
        /// Holds lost for ZKLOCK_REASON_CLIENT_CLOSED.
        ZKLOCK_STAT_LOSSES_CLIENT_CLOSED = 104,
        /// Holds lost for ZKLOCK_REASON_OTHER.
        ZKLOCK_STAT_LOSSES_OTHER = 105,
        /// Holds lost for ZKLOCK_REASON_FOREIGN_CONTENDER.
        ZKLOCK_STAT_LOSSES_FOREIGN_CONTENDER = 106,
        /// Holds lost for ZKLOCK_REASON_SESSION_CLOSED.
        ZKLOCK_STAT_LOSSES_SESSION_CLOSED = 107,
    }
}

c_enum! {
    /// The distributions that zklock_client_histogram can give.
    pub enum zklock_histogram {
        /// Seconds from the start of a call that acquires a lock to its hold. Only calls that got a
        /// hold are counted.
        ZKLOCK_HISTOGRAM_ACQUIRE_WAIT = 1,
        /// Seconds from a grant to its release or loss. It is counted when the hold is released or
        /// freed, even if it had been lost.
        ZKLOCK_HISTOGRAM_HOLD_TIME = 2,
        /// Seconds from a heartbeat to its answer. Heartbeats are sent only while something is held.
        ZKLOCK_HISTOGRAM_HEARTBEAT_LAG = 3,
        /// How many contenders were ahead of a node in its queue when it had just been created. Zero
        /// means that the lock was free. For a set of locks, it is the longest of their queues; for a
        /// semaphore, the contenders that are about to take permits.
        ZKLOCK_HISTOGRAM_QUEUE_LENGTH = 4,
    }
}

/// One bucket of zklock_client_histogram.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct zklock_bucket {
    /// No counted value is larger. It is infinite in the last bucket.
    pub bound: f64,
    /// How many values were not larger than the bound. In the last bucket, that is the number of all
    /// values.
    pub count: u64,
}

/// The number of a figure in zklock_stat that counts losses is that of the reason plus this.
const LOSSES: i32 = 100;

/// Gets one figure about what a client has done so far, or what it still has to clean up. It sends
/// no request.
///
/// @param client the client.
/// @param stat one of zklock_stat.
/// @param[out] value the number.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_stat(
    client: *const zklock_client,
    stat: i32,
    value: *mut u64,
) -> zklock_status {
    use zklock_stat::{
        ZKLOCK_STAT_ACQUIRES_BUSY, ZKLOCK_STAT_ACQUIRES_CANCELLED, ZKLOCK_STAT_ACQUIRES_FAILED,
        ZKLOCK_STAT_ACQUIRES_GRANTED, ZKLOCK_STAT_ACQUIRES_TIMED_OUT, ZKLOCK_STAT_GRANTS, ZKLOCK_STAT_LOSSES,
        ZKLOCK_STAT_OWED, ZKLOCK_STAT_RECONNECTS, ZKLOCK_STAT_SESSION_ID, ZKLOCK_STAT_SESSION_TIMEOUT,
        ZKLOCK_STAT_SESSIONS,
    };
    call::status("zklock_client_stat", || {
        let unknown = || Failure::argument(format!("there is no stat with the number {stat}"));
        let value = out("value", value)?;
        let client = Client::table().find(client)?;
        let stats = client.inner().stats();
        let number = match zklock_stat::find(stat).ok_or_else(unknown)? {
            ZKLOCK_STAT_SESSIONS => stats.sessions,
            ZKLOCK_STAT_GRANTS => stats.grants,
            ZKLOCK_STAT_LOSSES => stats.losses,
            ZKLOCK_STAT_OWED => stats.owed,
            ZKLOCK_STAT_SESSION_ID => client.inner().session_id().map_or(0, unsigned),
            ZKLOCK_STAT_SESSION_TIMEOUT => {
                client.inner().session_timeout().map_or(0, |time| whole(time).unsigned_abs())
            }
            ZKLOCK_STAT_RECONNECTS => stats.reconnects,
            ZKLOCK_STAT_ACQUIRES_GRANTED => stats.acquires(AcquireOutcome::Granted),
            ZKLOCK_STAT_ACQUIRES_BUSY => stats.acquires(AcquireOutcome::Busy),
            ZKLOCK_STAT_ACQUIRES_TIMED_OUT => stats.acquires(AcquireOutcome::TimedOut),
            ZKLOCK_STAT_ACQUIRES_FAILED => stats.acquires(AcquireOutcome::Failed),
            ZKLOCK_STAT_ACQUIRES_CANCELLED => stats.acquires(AcquireOutcome::Cancelled),
            losses => losses_of(&stats, losses),
        };
        value.set(number);
        Ok(())
    })
}

/// Returns how many holds were lost for the reason that this figure counts.
fn losses_of(stats: &Stats, stat: zklock_stat) -> u64 {
    let is_meant = |reason: &&LossReason| zklock_reason::of(**reason) as i32 + LOSSES == stat as i32;
    LossReason::ALL.iter().filter(is_meant).map(|reason| stats.losses_by(*reason)).sum()
}

/// Gets the distribution of what a client has counted so far, such as the times that acquires took:
/// how many of the values were not larger than each of some bounds. It sends no request.
///
///     zklock_bucket buckets[ZKLOCK_BUCKETS];
///     size_t length;
///     double sum;
///
///     if (zklock_client_histogram(client, ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, buckets, ZKLOCK_BUCKETS, &length, &sum) != ZKLOCK_OK)
///         return fail(zklock_last_error());
///     const uint64_t count = buckets[length - 1].count;
///     if (count > 0) printf("%llu acquires waited %g s on average\n", (unsigned long long)count, sum / (double)count);
///
/// @param client the client. If it has not connected yet, all counts are 0.
/// @param histogram one of zklock_histogram.
/// @param buckets receives the buckets, in the order of their bounds. Buckets that do not fit are
///        left out. It may be NULL if size is 0.
/// @param size the number of buckets for which there is room. ZKLOCK_BUCKETS is enough for every
///        histogram of this version.
/// @param[out] length the number of buckets, even if they do not fit.
/// @param[out] sum the sum of all values.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_histogram(
    client: *const zklock_client,
    histogram: i32,
    buckets: *mut zklock_bucket,
    size: usize,
    length: *mut usize,
    sum: *mut f64,
) -> zklock_status {
    use zklock_histogram::{
        ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, ZKLOCK_HISTOGRAM_HEARTBEAT_LAG, ZKLOCK_HISTOGRAM_HOLD_TIME,
        ZKLOCK_HISTOGRAM_QUEUE_LENGTH,
    };
    call::status("zklock_client_histogram", || {
        let unknown = || Failure::argument(format!("there is no histogram with the number {histogram}"));
        let (length, sum) = (out("length", length)?, out("sum", sum)?);
        let room = outs("buckets", buckets, size)?;
        let stats = Client::table().find(client)?.inner().stats();
        let histogram = match zklock_histogram::find(histogram).ok_or_else(unknown)? {
            ZKLOCK_HISTOGRAM_ACQUIRE_WAIT => stats.acquire_wait,
            ZKLOCK_HISTOGRAM_HOLD_TIME => stats.hold_time,
            ZKLOCK_HISTOGRAM_HEARTBEAT_LAG => stats.heartbeat_lag,
            ZKLOCK_HISTOGRAM_QUEUE_LENGTH => stats.queue_length,
        };
        let counted: Vec<_> =
            histogram.buckets().map(|(bound, count)| zklock_bucket { bound, count }).collect();
        room.set(&counted);
        length.set(counted.len());
        sum.set(histogram.sum());
        Ok(())
    })
}

/// Gets all figures of zklock_client_stat and zklock_client_histogram as text for Prometheus. The
/// text has Prometheus' format 0.0.4: serve it as "text/plain; version=0.0.4". It sends no request.
///
///     static char page[16384];
///     size_t length;
///
///     if (zklock_client_prometheus(client, page, sizeof page, &length) != ZKLOCK_OK) return fail(zklock_last_error());
///     if (length <= sizeof page) fwrite(page, 1, length, out);
///
/// Names of metrics and labels do not change from version to version, but later versions may add
/// some. Each text is about one client. Do not join the texts of two clients: every name would then
/// occur twice, which Prometheus refuses.
///
/// @param client the client. If it has not connected yet, all counts are 0.
/// @param buffer receives the text, without a NUL at its end. Text that does not fit is cut off. It
///         may be NULL if size is 0.
/// @param size the size of the buffer in bytes.
/// @param[out] length the length of the whole text in bytes, even if it does not fit. The text may
///         be longer the next time.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_prometheus(
    client: *const zklock_client,
    buffer: *mut c_void,
    size: usize,
    length: *mut usize,
) -> zklock_status {
    call::status("zklock_client_prometheus", || {
        let length = out("length", length)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let page = Client::table().find(client)?.inner().stats().to_prometheus();
        room.set(page.as_bytes());
        length.set(page.len());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_stat() {
        for reason in LossReason::ALL {
            let stat = zklock_stat::find(zklock_reason::of(*reason) as i32 + LOSSES);
            assert!(stat.is_some(), "{reason:?}");
            assert_eq!(losses_of(&Stats::default(), stat.unwrap()), 0);
        }
    }
    #[test]
    fn there_is_room_for_every_histogram() {
        let stats = Stats::default();
        let all = [stats.acquire_wait, stats.hold_time, stats.heartbeat_lag, stats.queue_length];
        // ZKLOCK_BUCKETS.
        assert_eq!(all.map(|histogram| histogram.buckets().count()), [25, 25, 25, 13]);
    }
}
