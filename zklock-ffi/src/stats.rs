//! What a client has counted: figures, distributions, and both as text for Prometheus.

use crate::c_enum::c_enum;
use crate::client::{Client, zklock_client};
use crate::convert::{Given, unsigned, whole};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::loss::zklock_reason;
use crate::raw::{array, out, outs, text};
use crate::status::zklock_status;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use zklock::LossReason;
use zklock::face::check_metrics_name;
use zklock::further::{AcquireOutcome, LockStats, prometheus_text};

/// The counters of a client: its work so far, and the nodes that it still has to clean up.
/// zklock_client_stats fills all members. The struct never grows.
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
    /// Attempts whose caller already has an answer, but whose node may still exist. The client is
    /// deleting these nodes.
    pub owed: u64,
    /// Locks granted.
    pub grants: u64,
    /// Calls to acquire a lock that were given a hold.
    pub acquires_granted: u64,
    /// Calls to acquire a lock that tried once and found the lock busy.
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

/// The figures of the locks with one name in a client: see the option metrics-name in zklock_options_set.
/// zklock_client_lock_stats fills all members. The struct never grows.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug, Default)]
pub struct zklock_lock_stats {
    /// Grants that are held now. A reentrant thread has one, however often it acquires, and a lost
    /// hold is not held.
    pub held: u64,
    /// Calls that wait for the lock now.
    pub waiting: u64,
    /// The age of the oldest grant that is held now, in milliseconds; 0 if nothing is held.
    pub oldest_hold: u64,
    /// Calls to acquire such a lock that were given a hold.
    pub acquires_granted: u64,
    /// Calls that tried once and found the lock busy.
    pub acquires_busy: u64,
    /// Calls that waited until their timeout because others had the lock.
    pub acquires_timed_out: u64,
    /// Calls that failed with any other error.
    pub acquires_failed: u64,
    /// Calls that were cancelled, or whose zklock_call was freed.
    pub acquires_cancelled: u64,
    /// Holds lost for each zklock_reason, whose number is the index.
    pub losses_by: [u64; 16],
    /// Always 0. A later version may give them a meaning.
    pub reserved: [u64; 8],
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
    /// The largest value that the bucket counts. It is infinite in the last bucket.
    pub bound: f64,
    /// How many values were not larger than the bound. In the last bucket, that is the number of all
    /// values.
    pub count: u64,
}

export! {
    /// Gets the counters of a client. It sends no request.
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

export! {
    /// Gets the figures of the locks with one name in a client: what happened so far, and the present
    /// state. The text of zklock_client_prometheus also has how long they waited and held. It sends
    /// no request.
    ///
    ///     zklock_lock_stats report;
    ///
    ///     if (zklock_client_lock_stats(client, "report", &report) != ZKLOCK_OK) return fail(zklock_last_error());
    ///     if (report.oldest_hold > 3600000) puts("somebody has been writing the report for an hour");
    ///
    /// @param client the client.
    /// @param name the lock's option metrics-name: 1 to 128 bytes, without control characters.
    /// @param[out] stats the figures, all 0 if the client has made no lock with this name.
    /// @return ZKLOCK_OK.
    pub fn zklock_client_lock_stats(
        client: *const zklock_client,
        name: *const c_char,
        stats: *mut zklock_lock_stats,
    ) -> zklock_status {
        let stats = out("stats", stats)?;
        let name = text("name", name)?;
        check_metrics_name(name)?;
        let all = Client::table().find(client)?.inner().stats();
        stats.set(all.lock(name).map(counted_by_name).unwrap_or_default());
    }
}

fn counted_by_name(lock: &LockStats) -> zklock_lock_stats {
    zklock_lock_stats {
        held: lock.held,
        waiting: lock.waiting,
        oldest_hold: lock.oldest_hold.map_or(0, |age| whole(age).unsigned_abs()),
        acquires_granted: lock.acquires(AcquireOutcome::Granted),
        acquires_busy: lock.acquires(AcquireOutcome::Busy),
        acquires_timed_out: lock.acquires(AcquireOutcome::TimedOut),
        acquires_failed: lock.acquires(AcquireOutcome::Failed),
        acquires_cancelled: lock.acquires(AcquireOutcome::Cancelled),
        losses_by: by_reason(|reason| lock.losses_by(reason)),
        reserved: [0; 8],
    }
}

fn by_reason(count: impl Fn(LossReason) -> u64) -> [u64; 16] {
    let mut losses_by = [0; 16];
    for reason in LossReason::ALL {
        losses_by[zklock_reason::of(*reason) as usize] += count(*reason);
    }
    losses_by
}

fn counted(client: &zklock::Client) -> zklock_stats {
    let stats = client.stats();
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
        losses_by: by_reason(|reason| stats.losses_by(reason)),
        reserved: [0; 4],
    }
}

export! {
    /// Gets a histogram of the values that a client has counted so far, such as the times that acquires
    /// took. For each bucket, it has the number of values that are not larger than its bound. It sends
    /// no request.
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
        histogram: Given<zklock_histogram>,
        buckets: *mut zklock_bucket,
        size: usize,
        length: *mut usize,
        sum: *mut f64,
    ) -> zklock_status {
        use zklock_histogram::{
            ZKLOCK_HISTOGRAM_ACQUIRE_WAIT, ZKLOCK_HISTOGRAM_HEARTBEAT_LAG, ZKLOCK_HISTOGRAM_HOLD_TIME,
            ZKLOCK_HISTOGRAM_QUEUE_LENGTH,
        };
        let (length, sum) = (out("length", length)?, out("sum", sum)?);
        let room = outs("buckets", buckets, size)?;
        let stats = Client::table().find(client)?.inner().stats();
        let histogram = match histogram.find()? {
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

    /// Gets all figures of zklock_client_stats and zklock_client_histogram as text for Prometheus, for one
    /// client or for several. The text has Prometheus' format 0.0.4: serve it as "text/plain;
    /// version=0.0.4". It sends no request.
    ///
    ///     static char page[16384];
    ///     size_t length;
    ///
    ///     if (zklock_prometheus(&client, NULL, 1, page, sizeof page, &length) != ZKLOCK_OK) return fail(zklock_last_error());
    ///     if (length <= sizeof page) fwrite(page, 1, length, out);
    ///
    /// Names of metrics and labels do not change from version to version, but later versions may add
    /// some. Serve one text on a page: in two texts every name would occur twice, which Prometheus refuses.
    ///
    /// @param clients the clients. If one has not connected yet, all its counts are 0.
    /// @param names a name for each client, for the label "client". No two may be equal. NULL for a single
    ///         client, without that label.
    /// @param count the number of clients, at least 1.
    /// @param buffer receives the text, without a NUL at its end. Text that does not fit is cut off. It
    ///         may be NULL if size is 0.
    /// @param size the size of the buffer in bytes.
    /// @param[out] length the length of the whole text in bytes, even if it does not fit. The text may
    ///         be longer the next time.
    /// @return ZKLOCK_OK.
    pub fn zklock_prometheus(
        clients: *const *mut zklock_client,
        names: *const *const c_char,
        count: usize,
        buffer: *mut c_void,
        size: usize,
        length: *mut usize,
    ) -> zklock_status {
        let length = out("length", length)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let clients = array("clients", clients, count)?;
        let counted = |client: &*mut zklock_client| -> Result<_, Failure> {
            Ok(Client::table().find(*client)?.inner().stats())
        };
        let page = match clients {
            [] => return Err(Failure::argument("count is 0: give one client at least")),
            [client] if names.is_null() => counted(client)?.to_prometheus(),
            clients => {
                let mut stats = BTreeMap::new();
                for (client, name) in clients.iter().zip(array("names", names, count)?) {
                    let name = text("names", *name)?;
                    if stats.insert(name, counted(client)?).is_some() {
                        return Err(Failure::argument(format!("names has {name:?} twice: give each client its own")));
                    }
                }
                prometheus_text(&stats)
            }
        };
        room.set(page.as_bytes());
        length.set(page.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zklock::further::Stats;

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
