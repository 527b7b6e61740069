//! Which `with` block begins or ends.
//!
//! `__exit__` is not told which block it ends, and one lock may have several blocks in a thread: those of two
//! generators, for example, which end in any order. To release what was acquired last would take the permit of a block
//! that is still running. But the calling frame is known. A `with` statement enters and leaves from the same frame, and
//! the frame of a generator or coroutine lives as long as its block. If another context manager makes the calls, such
//! as an `ExitStack`, the frames differ, but both are of methods of one object.
//!
//! Only addresses are kept, because the objects would keep alive everything that their variables refer to. If an
//! address is used again, the block with that address was never left.

use crate::guest::sync::{Found, intern};
use pyo3::exceptions::PyGeneratorExit;
use pyo3::prelude::*;
use pyo3::types::PyFrozenSet;

/// The methods with which context managers enter and leave other context managers.
const GO_BETWEENS: [&str; 6] =
    ["__enter__", "__exit__", "__aenter__", "__aexit__", "enter_context", "enter_async_context"];

/// A block, identified by the addresses of its caller; empty if they cannot be known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Block {
    frame: Option<Frame>,
    /// The context manager whose method made the call.
    go_between: Option<usize>,
}

/// The frame, together with its code: the address of a frame is reused after its call, usually for a call of something
/// else.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Frame {
    frame: usize,
    code: usize,
}

impl Block {
    /// Returns the block of the caller.
    pub(crate) fn of_caller(py: Python<'_>) -> Self {
        // There is no frame if native code makes the call in a thread that runs no Python.
        Self::look(py).unwrap_or_default()
    }

    fn look(py: Python<'_>) -> PyResult<Self> {
        static FRAME: Found<Py<PyAny>> = Found::new();
        let find = || py.import("sys")?.getattr("_getframe").map(Bound::unbind);
        let frame = FRAME.or_find(find)?.bind(py).call0()?;
        let code = frame.getattr(intern!(py, "f_code"))?;
        let name = code.getattr(intern!(py, "co_name"))?;
        let is_between = Self::go_betweens(py)?.contains(name)?;
        // Do not ask just any frame for its variables: that would keep them alive as long as the frame.
        let go_between = is_between.then(|| Self::receiver(&frame, &code).ok()).flatten();
        let frame = Frame { frame: frame.as_ptr() as usize, code: code.as_ptr() as usize };
        Ok(Self { frame: Some(frame), go_between })
    }

    /// Returns the names as a Python set: that is one lookup, where a comparison would create a string for each.
    fn go_betweens(py: Python<'_>) -> PyResult<&Bound<'_, PyFrozenSet>> {
        static NAMES: Found<Py<PyFrozenSet>> = Found::new();
        let names = NAMES.or_find(|| PyFrozenSet::new(py, GO_BETWEENS).map(Bound::unbind))?;
        Ok(names.bind(py))
    }

    /// Returns the first argument of a call.
    fn receiver(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = frame.py();
        let name = code.getattr(intern!(py, "co_varnames"))?.get_item(0)?;
        let receiver = frame.getattr(intern!(py, "f_locals"))?.get_item(name)?;
        Ok(receiver.as_ptr() as usize)
    }

    /// Whether its end may come from anywhere. A block that another context manager has entered can be handed on, for
    /// example by `pop_all()` of an `ExitStack`.
    pub(crate) fn may_move(self) -> bool {
        self.go_between.is_some() || self.frame.is_none()
    }

    /// Returns which of these blocks ends, the latest last; `None` if that cannot be known.
    pub(crate) fn find(
        self,
        blocks: impl DoubleEndedIterator<Item = (usize, Self)> + Clone,
    ) -> Option<usize> {
        let mut latest = blocks.clone().rev();
        let same_frame = latest.find(|(_, block)| self.frame.is_some() && block.frame == self.frame);
        let same_object = || {
            let mut latest = blocks.rev();
            latest.find(|(_, block)| self.go_between.is_some() && block.go_between == self.go_between)
        };
        same_frame.or_else(same_object).map(|(index, _)| index)
    }
}

/// Whether a block ends because its generator or coroutine is being closed.
pub(crate) fn is_generator_exit(exception: &Bound<'_, PyAny>) -> bool {
    exception.is_instance_of::<PyGeneratorExit>()
}
