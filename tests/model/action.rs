//! The events of a world. A trace is a list of them.

/// Something that can happen. The first number is the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Its next request is executed. A read is answered from this one of the states that its server may be in. A creation at
    /// the end of the numbers gets the last of them, or one beyond.
    Execute(u8, u8),
    /// Its replies arrive.
    Deliver(u8),
    /// Its watch fires.
    Tell(u8),
    /// A pause of its contender is over.
    Resume(u8),
    /// Its caller releases the hold.
    Release(u8),
    /// The same, and another caller of its process waits for it.
    Pass(u8),
    /// Another caller of its process takes over the node that it holds or keeps.
    Take(u8),
    /// The time is over for which it keeps a node without a holder.
    TimeOut(u8),
    /// It learns that its session is over.
    Learn(u8),
    /// Its connection is there again.
    Connect(u8),
    /// The same, to a server that has lost the last deletion and still shows the deleted nodes.
    Haunt(u8),
    /// That server is started again, and its connections are lost.
    Restart(u8),
    /// It opens a session.
    Open(u8),
    /// Its caller tries again.
    TryAgain(u8),
    /// Its caller takes the read side within the write side that is held.
    Begin(u8),
    /// The number of permits is raised.
    Raise,
    /// Its connection is lost after this many replies, with the requests that were not executed.
    Lose(u8, u8),
    /// Its requests are given up after this many replies, but will still be executed.
    GiveUp(u8, u8),
    /// Its creation is executed a second time, and the connection is lost before the reply.
    Twin(u8),
    /// Its next request is refused.
    Refuse(u8),
    /// Its caller gives up.
    Cancel(u8),
    /// Its session ends on the servers.
    Expire(u8),
    /// It sends a heartbeat.
    Beat(u8),
    /// An operator deletes this child.
    Delete(u8),
    /// An operator deletes this directory with all children, or the server does if it is empty.
    DeleteParent(u8),
    /// An operator changes the data of this child.
    Change(u8),
    /// Somebody asks the holder of this child, in its data, to release.
    Revoke(u8),
    /// Time passes.
    Step,
}
