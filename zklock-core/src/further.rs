//! What a program needs that needs more than a lock: further locks and options, logging in, and what looks on.

#[cfg(feature = "tls")]
pub use crate::connect::tls::{PassPhrase, Tls};
pub use crate::{
    base::error::Conflict,
    base::histogram::Histogram,
    base::lock_figures::LockStats,
    base::outcome::AcquireOutcome,
    base::owner::Owner,
    base::stats::Stats,
    base::wait::{Deadline, Wait},
    client::barrier::Barrier,
    client::double_barrier::DoubleBarrier,
    client::job_spec::AfterFailure,
    client::member::Member,
    client::record::{Record, RunOutcome},
    client::run::RunEntry,
    connect::access::{Access, AccessList},
    connect::credentials::Credentials,
    connect::path::check_lock_path,
    hold::guarded::{Committed, Guarded},
    hold::loss::Loss,
    hold::wanted::Wanted,
    operator::observe::Observer,
    operator::prometheus::prometheus_text,
    session::connection::{Connection, ConnectionState},
    session::guardian::Guardian,
    session::session_key::{SessionEnd, SessionKey},
    threads::interrupt::Interrupt,
    threads::started::Started,
    threads::watch::Watch,
    zookeeper::ensemble::NodeData,
};
#[doc(inline)]
pub use zklock_machine::{
    claim::Foreign,
    layout::InvalidPattern,
    name::{Naming, Role},
};
