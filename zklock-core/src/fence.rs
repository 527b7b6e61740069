//! Fences: what a lock guards refuses the write of a holder that is late.
//!
//! A process may be paused between its last look at a hold and its write. Only the resource can refuse that write. So it keeps
//! the greatest token of each lock, and compares, keeps and writes in one atomic step.
//!
//! In a database the transaction does that: its first statement raises the lock's row in a table of fences, or is refused. The row
//! stays locked until the commit, so it orders the holders, and a transaction that is rolled back raises nothing. [`Database`] has
//! the statements as texts, for any client library. For files there is [`publish`], and the page `docs/fencing.md` has the rest.

mod database;
mod files;
mod stamp;

pub use database::Database;
pub use files::publish;
pub use stamp::Stamp;
