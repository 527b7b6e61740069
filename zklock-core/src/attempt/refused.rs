//! The errors of attempts that are refused.

use crate::base::error::{Error, ErrorKind, LossReason};
use crate::machine::name::{Name, Role};
use crate::machine::protocol::Refusal;

/// Returns the error of an attempt to hold the lock at `path`. `loss` is the reason why its session is over, if it is.
pub(super) fn refused(path: &str, refusal: Refusal, loss: Option<LossReason>) -> Error {
    let (kind, message) = match refusal {
        Refusal::ForeignContender(name) if Name::is_of_several_locks(&name) => (
            ErrorKind::ForeignContender,
            format!(
                "the node {path} has the contender {name}, of a program that keeps several locks under one \
                 node; it cannot see contenders like ours, and ours cannot see which of its contenders want \
                 the same lock, so both could hold at once; join one of their queues with the path {path}/NAME \
                 and the naming {{name}}_lock_{{sequence}}, give the lock a node of its own for all its users, \
                 or set foreign to ignore-unknown if those contenders have nothing to do with it"
            ),
        ),
        Refusal::ForeignContender(name) if Name::is_unknown(&name) => (
            ErrorKind::ForeignContender,
            format!(
                "the lock {path} has the contender {name}: it ends with a sequence number, like the \
                 contenders of custom locks, and is not of a library that zklock knows; neither side sees \
                 the other, so both could hold at once; join its queue with a pattern for such names, such as \
                 the naming lock-{{sequence}}, give the lock a path of its own for all its users, or set \
                 foreign to ignore-unknown if {name} has nothing to do with it"
            ),
        ),
        Refusal::ForeignContender(name) => (
            ErrorKind::ForeignContender,
            format!(
                "the lock {path} has the contender {name}, which cannot see contenders like ours: both could \
                 hold at once; make both sides use one naming scheme and one kind of lock (kazoo: Lock(..., \
                 extra_lock_patterns=[\"-lock-\"]), and its Semaphore at another path), or set \
                 foreign to ignore-unknown if it is certain that they see ours"
            ),
        ),
        Refusal::NotOurs(name) => (
            ErrorKind::Refused,
            format!("the node {name} of {path} bears our mark but belongs to another session"),
        ),
        Refusal::WriterGone => (
            ErrorKind::Lost(loss.unwrap_or(LossReason::NodeDeleted)),
            format!(
                "the read side of {path} cannot be acquired, because the hold of the write side around it is lost"
            ),
        ),
        Refusal::NoParent => (
            ErrorKind::Refused,
            format!("the node {path} vanishes whenever it is created: something deletes it in a loop"),
        ),
        Refusal::UsedUp(directory) => (
            ErrorKind::Refused,
            format!(
                "the sequence numbers of {directory} are used up, after 2³¹ contenders: names repeat there, \
                 and two could hold the lock {path}; delete that node while the lock is not in use, and it is \
                 created again"
            ),
        ),
        Refusal::NoRoot => (
            ErrorKind::Refused,
            format!("{path} cannot be created: the chroot does not exist; create it first"),
        ),
        Refusal::Denied => (
            ErrorKind::Refused,
            format!(
                "the access list of {path} or of a node above it does not allow it: ask for create and delete"
            ),
        ),
        Refusal::Busy => (ErrorKind::Timeout, format!("the lock {path} is held by another")),
        Refusal::Answer(answer) => {
            (ErrorKind::Refused, format!("the server refused the lock {path}: {answer}"))
        }
    };
    Error::new(kind, message)
}

/// Returns the error of an owner that would wait for what it alone can release.
pub(super) fn deadlock(path: &str, wanted: Role, held: Role) -> Error {
    let message = match (wanted, held) {
        (Role::Write, Role::Read) => format!(
            "this thread or task holds the read side of {path}, so it would wait for itself: release that first, then \
             acquire the write side and read again what may have changed"
        ),
        _ => format!(
            "this thread or task holds {path} through a reentrant lock, and only it can release that hold, \
             so it would wait for itself: release that first"
        ),
    };
    Error::new(ErrorKind::Deadlock, message)
}
