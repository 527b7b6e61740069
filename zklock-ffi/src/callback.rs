//! A function of the host that we may call until the host ends it.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use zklock::face::call_later;

/// Whether the function may still be called, and whether it is running.
pub(crate) struct CallbackGate {
    state: Mutex<GateState>,
    returned: Condvar,
}

#[derive(Default)]
struct GateState {
    runs: bool,
    ended: bool,
}

thread_local! {
    /// The gate whose callback is running on this thread.
    static RUNNING: Cell<*const CallbackGate> = const { Cell::new(std::ptr::null()) };
}

impl CallbackGate {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(GateState { runs: false, ended: false }), returned: Condvar::new() }
    }

    /// Makes the call, unless the gate was ended. No lock is held meanwhile.
    pub(crate) fn run(&self, call: impl FnOnce()) {
        {
            let mut state = self.state();
            if state.ended {
                return;
            }
            state.runs = true;
        }
        RUNNING.set(self);
        call();
        RUNNING.set(std::ptr::null());
        self.state().runs = false;
        self.returned.notify_all();
    }

    /// Starts no more calls from now on. Waits for one that is running, unless this is called from
    /// within it.
    pub(crate) fn end(&self) {
        let is_within = std::ptr::eq(RUNNING.get(), self);
        let mut state = self.state();
        state.ended = true;
        while state.runs && !is_within {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves a call from the I/O thread, which has no time for callbacks, to the thread for callbacks.
pub(crate) fn teller<V: Send + 'static>(
    gate: Arc<CallbackGate>,
    call: impl FnOnce(V) + Send + 'static,
) -> Box<dyn FnOnce(V) + Send> {
    Box::new(move |news| {
        // If there is no thread for it, the host can still ask for the state.
        let _ = call_later(move || gate.run(|| call(news)));
    })
}
