//! What can happen in a world. A trace is a list of these.

/// Something that can happen. The first number is the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Its next request is executed; a read is answered from this one of the states its server may be in. A creation
    /// at the end of the numbers gets the last of them, or one beyond.
    Execute(u8, u8),
    /// Its replies arrive.
    Deliver(u8),
    /// Its watch tells.
    Tell(u8),
    /// A pause of its contender is over.
    Resume(u8),
    /// Its caller releases the hold.
    Release(u8),
    /// The same, and another of its process awaits it.
    Pass(u8),
    /// Another of its process takes over what it has or keeps.
    Take(u8),
    /// What it keeps, and nobody has, has stayed for its time.
    TimeOut(u8),
    /// It learns that its session is over.
    Learn(u8),
    /// Its connection is there again.
    Connect(u8),
    /// The same, to a server that has lost the last deletion and goes on to show what is gone.
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
    /// Its requests are given up after this many replies, and will be executed all the same.
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
    /// An operator deletes this directory with all children, or the server an empty one.
    DeleteParent(u8),
    /// An operator changes the data of this child.
    Change(u8),
    /// Somebody asks in this child that its holder let go.
    Revoke(u8),
    /// Time passes.
    Step,
}
