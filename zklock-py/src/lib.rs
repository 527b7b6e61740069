//! The native module of the Python package `zklock`.
//!
//! ```text
//!  client   lock   hold   guarded   loss   observer     what Python sees, with its threads
//!  aio/                                         the same for asyncio
//!  barrier   double_barrier                         these two
//!  kinds   kind   patience                      the kinds of lock; one lock, and how long to wait for it
//!  place   block   told                         what is held at a path, and by whom; by which `with` block; who is told of a loss
//!  coroutine   task   greenlet                  calls as coroutines; tasks and greenlets as owners, and how those wait
//!  testing                                      the embedded server, which uses none of these but the last row
//!  wait   exit   dispatch   log   error   value   what a guest of the interpreter has to mind
//! ```
//!
//! It is native to the last step, because a context manager that is written in Python leaks: a signal may
//! raise between any two of its byte codes. Nothing here is reached by a signal between the grant and the
//! first line of a `with` block, nor between its last line and the release.

mod aio;
mod barrier;
mod block;
mod callback;
mod client;
mod connection;
mod coroutine;
mod dispatch;
mod double_barrier;
mod error;
mod exit;
mod greenlet;
mod guarded;
mod hold;
mod hosts;
mod kind;
mod kinds;
mod lock;
mod log;
mod loss;
mod loss_callbacks;
mod number;
mod observer;
mod options;
mod patched;
mod patience;
mod place;
mod sync;
mod task;
mod testing;
mod value;
mod wait;

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
        client::Client,
        double_barrier::{DoubleBarrier, Member},
        guarded::{AsyncGuarded, BaseGuarded, Guarded},
        hold::{BaseHold, Hold},
        lock::Lock,
        loss::Loss,
        observer::Observer,
        options::Tls,
        testing::{Injected, Server},
    };

    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::exit::refuse_subinterpreter(module.py())?;
        // Now, so that to raise an error runs nothing of Python later.
        crate::error::prepare(module.py())?;
        crate::value::prepare(module.py())?;
        crate::wait::prepare();
        crate::exit::prepare(module)
    }
}
