//! Every time that is a part of the session timeout, T, and why it is that part.
//!
//! The proofs are in [`lease`](crate::lease) and [`keeper`](crate::keeper). What the pages say of these parts is compared with
//! this file by `tests/docs/times`.

use std::time::Duration;

/// A part of a time, usually of T: a numerator and a denominator.
#[derive(Clone, Copy, Debug)]
pub struct Part(u32, u32);

impl Part {
    /// Returns this part of a time.
    pub fn of(self, whole: Duration) -> Duration {
        whole * self.0 / self.1
    }
}

// What a lease rests on.

/// Pings: how seldom followers may hear from their leader, with a server's usual limits.
pub const PING: Part = Part(1, 4);
/// So old a connection has answered a ping since something was heard on it: it would have been given up otherwise.
pub const PINGED: Part = Part(3, 4);
/// For two clocks that do not run equally fast.
pub const CLOCKS: Part = Part(1, 50);
/// A claim ends this long after the sending of a write, at most. So no server may grant a smaller part of what another one
/// granted.
pub const LEASE: Part = Part(1, 2);
/// Writes that were sent closer together are remembered as one: more would take room, and prove hardly more.
pub const REMEMBERED: Part = Part(1, 64);

// When a holder learns of a loss that nothing but a heartbeat shows.

/// The least time for that, and the default. So much of the lease is left when a lock is granted, too.
pub const HEARTBEAT: Part = Part(1, 10);
/// The most time for that. With more, the lease would lapse between two beats.
pub const RAREST: Part = Part(1, 3);
/// The most time for that under `zklock run`. With more, a lease has at times so little left that the command gets TERM.
pub const RAREST_OF_RUN: Part = Part(1, 5);

// How far apart beats are.

/// The usual distance. It is less than [`HEARTBEAT`], because timers are late.
pub const BEAT: Part = Part(1, 12);
/// The part of the time in which holders learn of a loss: beats that are rarer are sooner in the same proportion.
pub const SOONER: Part = Part(BEAT.0 * HEARTBEAT.1, BEAT.1 * HEARTBEAT.0);
/// The distance while the lease is short, or answers are later than this. Holds bear [later answers](BEARABLE) with it.
pub const CLOSE: Part = Part(1, 24);
/// So much of the lease is left when the next beat is sent.
pub const RESERVE: Part = Part(1, 4);
/// A beat or a look that has failed is repeated after this: soon, but no request of many follows the other at once.
pub const AGAIN: Part = Part(1, 40);

// Answers that are late.

/// Holds last while every answer comes within this, with beats that are [`CLOSE`].
pub const BEARABLE: Part = Part(1, 5);
/// A grant waits for beats if answers are later than this: the lease might lapse before they renew it.
pub const RISKY: Part = Part(1, 20);
/// Beats may be as rare as the client wishes until answers are later than this.
pub const PROMPT: Part = Part(1, 40);
/// Beats are no further apart than this while answers are later than that. Those that are further apart are rare.
pub const SELDOM: Part = Part(1, 6);
/// Beats are as usual while answers are later than this.
pub const SLOW: Part = Part(1, 10);
/// The reserve if beats are rare: more is not left of a lease between them.
pub const RESERVE_IF_RARE: Part = Part(1, 7);

// Servers that are silent.

/// A connection is given up when a reply takes longer: the lease has ended by then. A ticket may take as long.
pub const PATIENCE: Part = Part(1, 2);
/// A try to attach another connection may take this long, so that there are several before the servers end the session.
/// While one opens a session, a server may take as long to say its version.
pub const ATTACH: Part = Part(1, 4);
/// A session that no server has granted for so long is given up: the servers have ended it, unless none of them worked.
pub const ABANDONED: Part = Part(2, 1);
/// A watch that is silent for so long is doubted: a question costs the ensemble a write.
pub const DOUBTED: Part = Part(2, 1);

// What holders need.

/// The lease must outlast by this what is about to begin: it takes time to begin.
pub const MARGIN: Part = Part(1, 100);
/// The most time from TERM to KILL for a job whose lease is about to end. A lease in good health runs for [`BEARABLE`] at least,
/// right after a grant, and for more than twice that later. So no job gets TERM without trouble.
pub const TERM: Part = Part(1, 10);
/// The most time from KILL to the end of the lease.
pub const KILL: Part = Part(1, 25);
