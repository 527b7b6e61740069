//! The native module of the Python package `zklock`.
//!
//! ```text
//!  client   lock   hold   guarded   observer   barrier   double_barrier   loss   wanted   what Python sees, with its threads
//!  aio/                                         the same for asyncio
//!  kinds   base_lock   base_hold                what is the same in both, as Python sees it
//!  shared_*                                     and below that: what both faces of one thing share
//!  kept   block   patience                      what is held, by whom, by which `with` block; how long to wait
//!  hosts   options   credentials   tls          how to connect, and as whom
//!  connection   hold_callbacks   callback       functions of the user's that are called
//!  greenlet   coroutine   bell   task           calls as coroutines; tasks and greenlets as owners, and how those wait
//!  testing                                      the embedded server, which uses none of these but the last row
//!  wait   dispatch   log   patched   error   entrance   exit   value   number   mirror   sync    being a guest of the interpreter
//! ```
//!
//! It is native down to the last step, because a context manager written in Python can leak: a signal may raise between
//! any two of its byte codes. In native code, no signal handler runs between the grant and the first line of a `with`
//! block, or between its last line and the release.

mod aio;
mod anchor;
mod barrier;
mod base_hold;
mod base_lock;
mod bell;
mod block;
mod callback;
mod client;
mod connection;
mod coroutine;
mod credentials;
mod dispatch;
mod double_barrier;
mod entrance;
mod error;
mod exit;
mod greenlet;
mod guarded;
mod guardian;
mod hold;
mod hold_callbacks;
mod hosts;
mod kept;
mod kinds;
mod lock;
mod log;
mod loss;
mod mirror;
mod number;
mod observer;
mod options;
mod patched;
mod patience;
mod shared_barrier;
mod shared_client;
mod shared_double_barrier;
mod shared_hold;
mod shared_lock;
mod shared_observer;
mod sync;
mod task;
mod testing;
mod tls;
mod value;
mod wait;
mod wanted;

#[pyo3::pymodule(gil_used = false)]
mod _zklock {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        aio::barrier::AsyncBarrier,
        aio::client::AsyncClient,
        aio::double_barrier::{AsyncDoubleBarrier, AsyncMember},
        aio::hold::AsyncHold,
        aio::lock::AsyncLock,
        aio::observer::AsyncObserver,
        barrier::Barrier,
        base_hold::BaseHold,
        client::Client,
        credentials::{Digest, Kerberos, Sasl},
        double_barrier::{DoubleBarrier, Member},
        guarded::{AsyncGuarded, BaseGuarded, Guarded},
        hold::Hold,
        lock::Lock,
        loss::Loss,
        observer::Observer,
        testing::{Injected, Server},
        tls::{PassPhrase, Tls},
        wanted::Wanted,
    };

    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::exit::refuse_subinterpreter(module.py())?;
        zklock_core::face::log_panics();
        // Load them now, so that raising an error later runs no Python code.
        crate::error::prepare(module.py())?;
        crate::value::prepare(module.py())?;
        crate::wait::prepare();
        crate::entrance::prepare(module)?;
        crate::exit::prepare(module)
    }
}
