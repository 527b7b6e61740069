//! Writes that are done only if a lock is held, and reads that go with them.

use crate::c_enum::c_enum;
use crate::convert::Given;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::hold::{Held, zklock_hold};
use crate::raw::{array, out, outs, text};
use crate::started::{Answer, Started, starts, zklock_call};
use crate::status::zklock_status;
use std::ffi::{c_char, c_void};
use zklock::Call;
use zklock::further::{Committed, Guarded};

c_enum! {
    /// What a guarded write does.
    pub enum zklock_write_kind {
        /// Create a persistent node with data.
        ZKLOCK_WRITE_CREATE = 1,
        /// Set the data of a node.
        ZKLOCK_WRITE_SET = 2,
        /// Delete a node.
        ZKLOCK_WRITE_DELETE = 3,
    }
}

/// One of the writes of zklock_hold_commit.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_write {
    /// What is done.
    pub kind: Given<zklock_write_kind>,
    /// For ZKLOCK_WRITE_SET and ZKLOCK_WRITE_DELETE, the version that the node must have;
    /// ZKLOCK_ANY_VERSION if any version will do.
    pub version: i32,
    /// The path of the node.
    pub path: *const c_char,
    /// For ZKLOCK_WRITE_CREATE and ZKLOCK_WRITE_SET, the data. It may be NULL if length is 0.
    pub data: *const c_void,
    /// The length of the data in bytes.
    pub length: usize,
    /// Must be 0. A later version may give it a meaning.
    pub reserved: [u64; 2],
}

export! {
    /// Writes to ZooKeeper itself: either all of the writes or none, and only if the lock is still held
    /// when the servers commit them. It waits for the servers' answer, or until none can come: for a
    /// session timeout or two seconds at most, whichever is longer.
    ///
    /// @param hold the hold.
    /// @param writes the writes, which are done in this order.
    /// @param count the number of writes.
    /// @param[out] versions the version of each node after its write, as many as there are writes: 0
    ///         for a node that was created, ZKLOCK_NO_NODE for a node that was deleted. It may be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_LOST if the lock was no longer held, and nothing was written;
    ///         ZKLOCK_CONFLICT if a node was not in the required state, and nothing was written:
    ///         zklock_last_conflict says which write was refused; ZKLOCK_UNCERTAIN if the reply was
    ///         lost, and either all or nothing is written: see zklock_hold_read;
    ///         ZKLOCK_NOT_HELD after a release; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT
    ///         for an invalid path, or for more than 512 KiB in total.
    pub fn zklock_hold_commit(
        hold: *mut zklock_hold,
        writes: *const zklock_write,
        count: usize,
        versions: *mut i32,
    ) -> zklock_status {
        let writes = array("writes", writes, count)?;
        let versions = outs("versions", versions, if versions.is_null() { 0 } else { count })?;
        let written = committing(&*Held::table().find(hold)?, writes)?.wait()?;
        versions.set(&numbers(&written));
    }

    /// Gets the versions that a call of zklock_hold_commit_start has written. It returns at once.
    ///
    /// @param call the call. You must still free it.
    /// @param[out] versions the version of each node after its write, as zklock_hold_commit gives them.
    ///         There are as many as there were writes, and zklock_call_finish gives that number. It may
    ///         be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything
    ///         that zklock_call_finish returns.
    pub fn zklock_call_versions(call: *mut zklock_call, versions: *mut i32) -> zklock_status {
        // Check the output parameter first, so that misuse is found whatever the result is.
        outs("versions", versions, (!versions.is_null()).into())?;
        let written = Started::table().find(call)?.answer(|answer| match answer {
            Answer::Versions(written) => Ok(written.clone()),
            _ => Err(answer.unsuited("versions")),
        })?;
        outs("versions", versions, if versions.is_null() { 0 } else { written.len() })?.set(&written);
    }

    /// Reads the data and the version of a node in ZooKeeper. The answer is at least as recent as
    /// everything that the servers had committed when this was called. So after ZKLOCK_UNCERTAIN, read
    /// what you meant to write. If it is not there, write again, with the version that you have read:
    /// at most one of the two writes is done. (While the hold lasts, a server that was cut off may
    /// still do the first one.) Once the hold is released or lost, the answer is final. It works while
    /// the client is open.
    ///
    ///     char state[64];
    ///     size_t length;
    ///     int32_t version;
    ///
    ///     if (zklock_hold_read(hold, "/report/state", state, sizeof state, &length, &version) != ZKLOCK_OK)
    ///         return fail(zklock_last_error());
    ///     if (version == ZKLOCK_NO_NODE) puts("no report yet");
    ///     else if (length > sizeof state) puts("longer than it should be");
    ///     else printf("version %d: %.*s\n", (int)version, (int)length, state);
    ///
    /// It waits for the servers' answer, for a session timeout or two seconds at most, whichever is
    /// longer.
    ///
    /// @param hold the hold.
    /// @param path the path of the node.
    /// @param buffer receives the data, without a NUL at its end. Data that does not fit is cut off. It
    ///         may be NULL if size is 0.
    /// @param size the size of the buffer in bytes.
    /// @param[out] length the length of all the data in bytes, even if it does not fit; 0 if the node
    ///         does not exist.
    /// @param[out] version the version of the node, for a zklock_write. If the node does not exist,
    ///         ZKLOCK_NO_NODE, which a write refuses.
    /// @return ZKLOCK_OK, even if the node does not exist; ZKLOCK_UNREACHABLE if the servers did not
    ///         answer in time; ZKLOCK_REFUSED if the access list does not allow reading the node;
    ///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT for an invalid
    ///         path.
    pub fn zklock_hold_read(
        hold: *mut zklock_hold,
        path: *const c_char,
        buffer: *mut c_void,
        size: usize,
        length: *mut usize,
        version: *mut i32,
    ) -> zklock_status {
        let (length, version) = (out("length", length)?, out("version", version)?);
        let path = text("path", path)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let node = Held::table().find(hold)?.inner().read(path).wait()?;
        let (data, number) = node.map_or((Vec::new(), NO_NODE), |node| (node.data, node.version));
        room.set(&data);
        length.set(data.len());
        version.set(number);
    }
}

starts! {
    /// Starts to write as zklock_hold_commit does, and returns at once. zklock_call_versions gives the
    /// versions. If zklock_call_finish or zklock_call_versions returns ZKLOCK_CONFLICT,
    /// zklock_last_conflict says which write was refused.
    ///
    /// @param hold the hold. Keep it until the call has its result: freeing it releases the lock, and
    ///         the call may then give ZKLOCK_NOT_HELD.
    /// @param writes the writes, which are done in this order. They are copied.
    /// @param count the number of writes.
    pub fn zklock_hold_commit_start(hold: *mut zklock_hold, writes: *const zklock_write, count: usize) {
        let writes = array("writes", writes, count)?;
        let held = Held::table().find(hold)?;
        Started::keep(committing(&held, writes)?, held.events(), |written| Answer::Versions(numbers(&written)))
    }
}

fn committing(held: &Held, writes: &[zklock_write]) -> Result<Call<Committed>, Failure> {
    Ok(writes.iter().try_fold(held.inner().guarded(), add)?.checked()?.commit())
}

/// Returns the versions in C's form.
fn numbers(written: &Committed) -> Vec<i32> {
    written.versions().iter().map(|version| version.unwrap_or(NO_NODE)).collect()
}

/// `ZKLOCK_NO_NODE`. It differs from `ZKLOCK_ANY_VERSION`, and a write with it is refused.
const NO_NODE: i32 = -2;

/// `ZKLOCK_ANY_VERSION`.
const ANY_VERSION: i32 = -1;

/// Adds a write that came from C.
fn add(to: Guarded, write: &zklock_write) -> Result<Guarded, Failure> {
    let kind = write.kind.find()?;
    if write.reserved != [0; 2] {
        return Err(Failure::argument(
            "a reserved member of a write is not 0: set the whole struct to 0 first",
        ));
    }
    let version = match write.version {
        ANY_VERSION => None,
        version if version >= 0 => Some(version),
        version => {
            let message = format!(
                "no node has the version {version}: pass one that zklock_hold_read gave, or ZKLOCK_ANY_VERSION"
            );
            return Err(Failure::argument(message));
        }
    };
    let path = text("the path of a write", write.path)?;
    let data = array("the data of a write", write.data.cast(), write.length)?;
    Ok(match kind {
        zklock_write_kind::ZKLOCK_WRITE_CREATE => to.create(path, data),
        zklock_write_kind::ZKLOCK_WRITE_SET => to.set_data(path, data, version),
        zklock_write_kind::ZKLOCK_WRITE_DELETE => to.delete(path, version),
    })
}
