//! What a client has counted: figures, distributions, and both as text for Prometheus.

use crate::c_enum::c_enum;
use crate::client::{Client, zklock_client};
use crate::convert::{unsigned, whole};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::loss::zklock_reason;
use crate::raw::{out, outs};
use crate::status::zklock_status;
use std::ffi::c_void;
use zklock_core::{AcquireOutcome, LossReason, blocking};

/// What a client has counted so far, and what it still has to clean up. zklock_client_stats fills all
/// members. The struct never grows.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_stats {
    /// Sessions opened.
    pub sessions: u64,
    /// The number of the session, as the servers print it in their logs; 0 if there is no session.
    pub session_id: u64,
    /// The session timeout that the servers granted, in milliseconds; 0 if there is no session.
    pub session_timeout: u64,
    /// How often a session got a new connection because the previous one broke.
    pub reconnects: u64,
    /// Attempts whose caller already has an answer, but whose node may still exist. It is being
    /// deleted.
    pub owed: u64,
    /// Locks granted.
    pub grants: u64,
    /// Calls to acquire a lock that were given a hold.
    pub acquires_granted: u64,
    /// Calls to acquire a lock that were not to wait, and found the lock busy.
    pub acquires_busy: u64,
    /// Calls to acquire a lock that waited until their timeout because others had the lock.
    pub acquires_timed_out: u64,
    /// Calls to acquire a lock that failed with any other error.
    pub acquires_failed: u64,
    /// Calls to acquire a lock that were cancelled, or whose zklock_call was freed.
    pub acquires_cancelled: u64,
    /// Holds lost.
    pub losses: u64,
    /// Holds lost for each zklock_reason, whose number is the index.
    pub losses_by: [u64; 16],
    /// Always 0. A later version may give them a meaning.
    pub reserved: [u64; 4],
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

export! {
    /// Gets what a client has counted so far. It sends no request.
    ///
    ///     zklock_stats stats;
    ///
    ///     if (zklock_client_stats(client, &stats) != ZKLOCK_OK) return fail(zklock_last_error());
    ///     if (stats.losses_by[ZKLOCK_REASON_NODE_DELETED] > 0) puts("an operator breaks our locks");
    ///
    /// @param client the client. If it has not connected yet, all counts are 0.
    /// @param[out] stats the counts.
    /// @return ZKLOCK_OK.
    pub fn zklock_client_stats(client: *const zklock_client, stats: *mut zklock_stats) -> zklock_status {
        let stats = out("stats", stats)?;
        stats.set(counted(Client::table().find(client)?.inner()));
    }
}

fn counted(client: &blocking::Client) -> zklock_stats {
    let stats = client.stats();
    let mut losses_by = [0; 16];
    for reason in LossReason::ALL {
        losses_by[zklock_reason::of(*reason) as usize] += stats.losses_by(*reason);
    }
    zklock_stats {
        sessions: stats.sessions,
        session_id: client.session_id().map_or(0, unsigned),
        session_timeout: client.session_timeout().map_or(0, |time| whole(time).unsigned_abs()),
        reconnects: stats.reconnects,
        owed: stats.owed,
        grants: stats.grants,
        acquires_granted: stats.acquires(AcquireOutcome::Granted),
        acquires_busy: stats.acquires(AcquireOutcome::Busy),
        acquires_timed_out: stats.acquires(AcquireOutcome::TimedOut),
        acquires_failed: stats.acquires(AcquireOutcome::Failed),
        acquires_cancelled: stats.acquires(AcquireOutcome::Cancelled),
        losses: stats.losses,
        losses_by,
        reserved: [0; 4],
    }
}

export! {
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
    pub fn zklock_client_histogram(
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
    }

    /// Gets all figures of zklock_client_stats and zklock_client_histogram as text for Prometheus. The
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
    pub fn zklock_client_prometheus(
        client: *const zklock_client,
        buffer: *mut c_void,
        size: usize,
        length: *mut usize,
    ) -> zklock_status {
        let length = out("length", length)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let page = Client::table().find(client)?.inner().stats().to_prometheus();
        room.set(page.as_bytes());
        length.set(page.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zklock_core::Stats;

    #[test]
    fn every_reason_has_its_place() {
        for reason in LossReason::ALL {
            assert!((1..16).contains(&(zklock_reason::of(*reason) as usize)), "{reason:?}");
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
