//! The native module of the Python package `zklock`.
//!
//! It is native down to the last step, because a context manager written in Python can leak: a signal may raise between
//! any two of its byte codes. In native code, no signal handler runs between the grant and the first line of a `with`
//! block, or between its last line and the release.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .         client                     what Python sees, with its threads
//           lock hold observer barrier double_barrier
// aio       client                     the same for asyncio
//           lock barrier double_barrier
//           hold observer
// shared    kinds base_lock            what is the same in both
//           observer barrier double_barrier lock
//           base_hold client
//           guarded loss wanted
//           kept block patience        what is held, by whom, by which `with` block; how long to wait
//           hold
// settings  options credentials hosts  how to connect, and as whom
//           tls guardian
// calls     greenlet                   calls as coroutines; tasks and greenlets as owners, and how those wait
//           coroutine
//           bell task
//           connection hold_callbacks  functions of the user's that are called
//           anchor callback
// .         testing                    the embedded server
// guest     log dispatch               being a guest of the interpreter
//           wait number
//           error
//           value exit
//           entrance mirror patched
//           sync
// ```

mod aio;
mod barrier;
mod calls;
mod client;
mod double_barrier;
mod guest;
mod hold;
mod lock;
mod observer;
mod settings;
mod shared;
mod testing;

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
        hold::Hold,
        lock::Lock,
        observer::Observer,
        settings::credentials::{Digest, Kerberos, Sasl},
        settings::tls::{PassPhrase, Tls},
        shared::base_hold::BaseHold,
        shared::guarded::{AsyncGuarded, BaseGuarded, Guarded},
        shared::loss::Loss,
        shared::wanted::Wanted,
        testing::{Injected, Server},
    };

    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::guest::exit::refuse_subinterpreter(module.py())?;
        zklock_core::face::log_panics();
        // Load them now, so that raising an error later runs no Python code.
        crate::guest::error::prepare(module.py())?;
        crate::guest::value::prepare(module.py())?;
        crate::guest::wait::prepare();
        crate::guest::entrance::prepare(module)?;
        crate::guest::exit::prepare(module)
    }
}
