//! A noun, such as a barrier: what its two classes, blocking and asyncio, have in common.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::call::Call;
use crate::verb::{Convert, Verb};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

/// Which of the two classes.
#[derive(Clone, Copy)]
pub(crate) enum Face {
    Threads,
    Asyncio,
}

/// One of the two classes.
pub(crate) trait Class {
    const FACE: Face;
    const NAME: &'static str;

    /// Makes the call as a method of this class: it waits, or gives a coroutine.
    fn make<C: Call, F: Convert<C::Answer>>(
        py: Python<'_>,
        method: &str,
        verb: Verb<C, F>,
    ) -> PyResult<Py<PyAny>> {
        match Self::FACE {
            Face::Threads => verb.run(py),
            Face::Asyncio => verb.begun_or_coroutine(py, format!("{}.{method}", Self::NAME))?.into_py_any(py),
        }
    }
}

/// What the objects of both classes refer to.
pub(crate) trait Inner {
    /// The word for what cannot be pickled, and what to do instead.
    const UNPICKLABLE: (&'static str, &'static str);

    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>>;
    fn describe(&self, class: &str) -> String;
}

/// Writes the two classes of a noun: methods of `both`, those of one alone, and those that every class has. Or the methods alone.
macro_rules! noun {
    (
        $(#[$about:meta])* struct $Blocking:ident;
        $(#[$about_aio:meta])* struct $Async:ident;
        both($Inner:ty) { $($both:tt)* }
        blocking { $($blocking:tt)* }
        asyncio { $($asyncio:tt)* }
    ) => {
        $crate::noun::noun!(@class [$(#[$about])*] $Blocking Threads $Inner { $($both)* $($blocking)* });
        $crate::noun::noun!(@class [$(#[$about_aio])*] $Async Asyncio $Inner { $($both)* $($asyncio)* });
    };
    (
        methods of $Blocking:ident, $Async:ident;
        both { $($both:tt)* }
        blocking { $($blocking:tt)* }
        asyncio { $($asyncio:tt)* }
    ) => {
        $crate::noun::noun!(@methods $Blocking Threads { $($both)* $($blocking)* });
        $crate::noun::noun!(@methods $Async Asyncio { $($both)* $($asyncio)* });
    };
    (@methods $Class:ident $Face:ident { $($methods:tt)* }) => {
        impl $crate::noun::Class for $Class {
            const FACE: $crate::noun::Face = $crate::noun::Face::$Face;
            const NAME: &'static str = stringify!($Class);
        }

        #[pyo3::pymethods]
        impl $Class { $($methods)* }
    };
    (@class [$($about:tt)*] $Class:ident $Face:ident $Inner:ty { $($methods:tt)* }) => {
        $($about)*
        #[pyo3::pyclass(frozen, weakref, module = "zklock")]
        pub(crate) struct $Class {
            anchor: pyo3::Py<$crate::calls::anchor::CallbackAnchor>,
            inner: std::sync::Arc<$Inner>,
        }

        impl $Class {
            pub(crate) fn of(
                py: pyo3::Python<'_>,
                inner: std::sync::Arc<$Inner>,
            ) -> pyo3::PyResult<pyo3::Py<Self>> {
                let anchor = $crate::noun::Inner::anchor(&*inner, py)?;
                pyo3::Py::new(py, Self { anchor, inner })
            }
        }

        $crate::noun::noun!(@methods $Class $Face {
            $($methods)*

            fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
                visit.call(&self.anchor)
            }

            fn __repr__(&self) -> String {
                $crate::noun::Inner::describe(&*self.inner, stringify!($Class))
            }

            fn __reduce__(&self) -> pyo3::PyResult<()> {
                let (what, advice) = <$Inner as $crate::noun::Inner>::UNPICKLABLE;
                Err($crate::guest::error::unpicklable(what, advice))
            }
        });
    };
}
pub(crate) use noun;
