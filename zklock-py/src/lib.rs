//! The native module of the Python package `zklock`.
//!
//! ```text
//!  client   lock   hold   guarded   loss        what Python sees, with its threads
//!  aio/                                         the same for asyncio
//!  place                                        what is held at a path, and by whom
//!  coroutine   task                             calls as coroutines; tasks as owners
//!  wait   exit   dispatch   log   error   value   what a guest of the interpreter has to mind
//! ```
//!
//! It is native to the last step, because a context manager that is written in Python leaks: a signal may
//! raise between any two of its byte codes. Nothing here is reached by a signal between the grant and the
//! first line of a `with` block, nor between its last line and the release.

mod aio;
mod client;
mod coroutine;
mod dispatch;
mod error;
mod exit;
mod guarded;
mod hold;
mod lock;
mod log;
mod loss;
mod options;
mod place;
mod task;
mod value;
mod wait;

#[pyo3::pymodule(gil_used = false)]
mod _zklock {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        aio::{client::AsyncClient, hold::AsyncHold, lock::AsyncLock},
        client::Client,
        guarded::{AsyncGuarded, BaseGuarded, Guarded},
        hold::{BaseHold, Hold},
        lock::Lock,
        loss::Loss,
        options::Tls,
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
