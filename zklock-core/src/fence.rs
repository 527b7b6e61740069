//! Fences: a resource that a lock guards refuses the writes of late holders.
//!
//! A process may be paused between its last check of a hold and its write. Only the resource can refuse that write. So the
//! resource keeps the greatest token of each lock. It compares, keeps and writes in one atomic step.
//!
//! In a database, a transaction does that: its first statement raises the lock's row in a table of fences, or is refused. The
//! row stays locked until the commit, so one holder's transaction waits for the other's. A transaction that is rolled back
//! raises nothing. [`Database`] has the statements as texts, for any client library. For files, use [`publish`]. The page
//! `docs/fencing.md` covers other resources.

mod database;
mod files;
mod stamp;

pub use database::Database;
pub use files::publish;
pub use stamp::Stamp;
