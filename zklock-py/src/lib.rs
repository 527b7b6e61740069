//! The native module of the Python package `zklock`.
//!
//! It is native down to the last step, because a context manager written in Python can leak: a signal may raise between
//! any two of its byte codes. In native code, no signal handler runs between the grant and the first line of a `with`
//! block, or between its last line and the release.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .         client                     the classes, blocking and asyncio side by side
//           kinds
//           lock double_barrier job
//           barrier observer hold
//           guarded loss wanted
//           noun                       what the two classes of a noun share
//           verb                       a call of the core, and how Python gets its answer
//           client_inner               what all that one client makes shares
//           holds                      what is held, by whom, by which `with` block; how long to wait
//           scope                      what a loss does to an `async with` block
//           inside held patience
//           block
// settings  options hosts guardian     how to connect, and as whom
//           credentials tls keyword
//           secret
// calls     greenlet                   how calls wait: in a greenlet, or as a coroutine; who owns what they acquire
//           coroutine
//           event_loop owner
//           waker
//           connection hold_callbacks  functions of the user's that are called
//           anchor callback
// .         testing fence              the embedded server; the statements of fences
// guest     log dispatch               being a guest of the interpreter
//           wait number
//           error
//           value exit
//           entrance mirror patched
//           sync platform
// ```

mod barrier;
mod block;
mod calls;
mod client;
mod client_inner;
mod double_barrier;
mod fence;
mod guarded;
mod guest;
mod held;
mod hold;
mod holds;
mod inside;
mod job;
mod kinds;
mod lock;
mod loss;
mod noun;
mod observer;
mod patience;
mod scope;
mod settings;
mod testing;
mod verb;
mod wanted;

#[pyo3::pymodule(gil_used = false)]
mod _zklock {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::{
        barrier::{AsyncBarrier, Barrier},
        client::{AsyncClient, Client},
        double_barrier::{AsyncDoubleBarrier, AsyncMember, DoubleBarrier, Member},
        fence::fence_sql,
        guarded::{AsyncGuarded, BaseGuarded, Guarded},
        hold::{AsyncHold, BaseHold, Hold},
        job::{AsyncJob, Job},
        kinds::prometheus_text,
        lock::{AsyncLock, Lock},
        loss::Loss,
        observer::{AsyncObserver, Observer},
        settings::credentials::{Digest, Kerberos, Sasl},
        settings::tls::{PassPhrase, Tls},
        testing::{Injected, Server, testing_program},
        wanted::Wanted,
    };

    #[pymodule_init]
    fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::guest::exit::refuse_subinterpreter(module.py())?;
        zklock::face::log_panics();
        // Load them now, so that raising an error later runs no Python code.
        crate::guest::error::prepare(module.py())?;
        crate::guest::value::prepare(module.py())?;
        crate::guest::wait::prepare();
        crate::guest::entrance::prepare(module)?;
        crate::guest::exit::prepare(module)
    }
}
