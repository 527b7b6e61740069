//! A noun, such as a barrier: what its two classes, blocking and asyncio, have in common.

use crate::calls::anchor::CallbackAnchor;
use crate::calls::owner;
use crate::guest::sync::intern;
use crate::verb::{Convert, Verb};
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyClass};
use std::sync::Arc;
use zklock::further::Owner;

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
    fn make<T: Send + 'static, F: Convert<T>>(
        py: Python<'_>,
        method: &str,
        verb: Verb<T, F>,
    ) -> PyResult<Py<PyAny>> {
        match Self::FACE {
            Face::Threads => verb.run(py),
            Face::Asyncio => verb.begun_or_coroutine(py, format!("{}.{method}", Self::NAME))?.into_py_any(py),
        }
    }
}

/// What the objects of both classes refer to.
pub(crate) trait Inner {
    fn anchor(&self, py: Python<'_>) -> PyResult<Py<CallbackAnchor>>;
    fn describe(&self, class: &str) -> String;
}

/// A class whose objects refer to nothing else.
pub(crate) trait Noun: PyClass {
    type Inner;

    fn of(py: Python<'_>, inner: Arc<Self::Inner>) -> PyResult<Py<Self>>;
}

impl Face {
    /// Returns the owner of what a call acquires.
    pub(crate) fn owner(self, py: Python<'_>) -> PyResult<Owner> {
        match self {
            Self::Threads => owner::of_caller(py),
            Self::Asyncio => owner::of_task_or_unique(py),
        }
    }

    /// Makes an object of that one of two classes.
    pub(crate) fn object<T: Noun, A: Noun<Inner = T::Inner>>(
        self,
        py: Python<'_>,
        inner: Arc<T::Inner>,
    ) -> PyResult<Py<PyAny>> {
        match self {
            Self::Threads => T::of(py, inner).map(Py::into_any),
            Self::Asyncio => A::of(py, inner).map(Py::into_any),
        }
    }
}

/// Returns the object for asyncio, which one for asyncio is itself.
pub(crate) fn aio<T: Noun + Class, A: Noun<Inner = T::Inner>>(
    object: &Bound<'_, T>,
    inner: &Arc<T::Inner>,
) -> PyResult<Py<PyAny>> {
    match T::FACE {
        Face::Threads => A::of(object.py(), inner.clone()).map(Py::into_any),
        Face::Asyncio => Ok(object.clone().into_any().unbind()),
    }
}

/// Returns the function with a block of this object around each call. One for asyncio takes a coroutine function.
pub(crate) fn decorate<'py, T: PyClass + Class>(
    object: &Bound<'py, T>,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = function.py();
    let (blocking, aio) = match T::FACE {
        Face::Threads => (Some(object), object.as_any().getattr(intern!(py, "aio"))?),
        Face::Asyncio => (None, object.clone().into_any()),
    };
    py.import("zklock._wrapping")?.call_method1(intern!(py, "decorated"), (blocking, aio, function))
}

/// Writes the two classes of a noun: methods of `both`, those of one alone, and those that every class has. What their objects refer
/// to stands with `both`, with the class that they extend, if there is one, and what else they have:
///
/// * `aio`: each gives the object for asyncio;
/// * `blocks`: a `with` block makes something, by `enter`, `exit`, `begin_block` and `end_block` of what they refer to;
/// * `calls`: they are decorators;
/// * `closes`: their own block ends by `exit` and `end_block`;
/// * `ends`: so does theirs, and it begins with nothing to do.
macro_rules! noun {
    (
        $(#[$about:meta])* struct $Blocking:ident;
        $(#[$about_aio:meta])* struct $Async:ident;
        both($Inner:ident $(in $Base:ident)? $(: $($has:ident),+)?) { $($both:tt)* }
        $(blocking { $($blocking:tt)* })?
        $(asyncio { $($asyncio:tt)* })?
    ) => {
        $crate::noun::noun!(@Threads [$($($has)+)?]
            [$Blocking $Async $Inner $($Base)? [$(#[$about])*]] { $($both)* $($($blocking)*)? });
        $crate::noun::noun!(@Asyncio [$($($has)+)?]
            [$Async $Async $Inner $($Base)? [$(#[$about_aio])*]] { $($both)* $($($asyncio)*)? });
    };
    (@$Face:ident [aio $($has:tt)*] [$Class:ident $Async:ident $($of:tt)*] { $($methods:tt)* }) => {
        $crate::noun::noun!(@$Face [$($has)*] [$Class $Async $($of)*] {
            $($methods)*

            /// This object for asyncio.
            #[getter]
            fn aio(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::noun::aio::<Self, $Async>(slf, Self::inner(slf))
            }
        });
    };
    (@Threads [blocks $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@Threads [(__exit__ exit bool) begins $($has)*] $of {
            $($methods)*

            fn __enter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                Self::inner(slf).enter(slf.py())
            }
        });
    };
    (@Asyncio [blocks $($has:tt)*] $of:tt $methods:tt) => {
        $crate::noun::noun!(@Asyncio [begins $($has)*] $of $methods);
    };
    (@Threads [closes $($has:tt)*] $of:tt $methods:tt) => {
        $crate::noun::noun!(@Threads [(__exit__ exit bool) (__aexit__ end_block Py<PyAny>) $($has)*] $of $methods);
    };
    (@Asyncio [closes $($has:tt)*] $of:tt $methods:tt) => {
        $crate::noun::noun!(@Asyncio [(__aexit__ end_block Py<PyAny>) $($has)*] $of $methods);
    };
    (@$Face:ident [begins $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@$Face [(__aexit__ end_block Py<PyAny>) $($has)*] $of {
            $($methods)*

            fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                Self::inner(slf).begin_block(slf.py())
            }
        });
    };
    (@Threads [ends $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@Threads [(__exit__ exit bool) $($has)*] $of {
            $($methods)*

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
        });
    };
    (@Asyncio [ends $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@Asyncio [(__aexit__ end_block Py<PyAny>) $($has)*] $of {
            $($methods)*

            fn __aenter__(slf: Py<Self>) -> $crate::calls::coroutine::Coroutine {
                let name = <Self as $crate::noun::Class>::NAME;
                $crate::calls::coroutine::Coroutine::done(format!("{name}.__aenter__"), slf.into_any())
            }
        });
    };
    (@$Face:ident [($exit:ident $by:ident $Result:ty) $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@$Face [$($has)*] $of {
            $($methods)*

            #[pyo3(signature = (kind, exception, traceback))]
            fn $exit(
                slf: &Bound<'_, Self>,
                kind: &Bound<'_, PyAny>,
                exception: &Bound<'_, PyAny>,
                traceback: &Bound<'_, PyAny>,
            ) -> PyResult<$Result> {
                let _ = (kind, traceback);
                Self::inner(slf).$by(exception)
            }
        });
    };
    (@$Face:ident [calls $($has:tt)*] $of:tt { $($methods:tt)* }) => {
        $crate::noun::noun!(@$Face [$($has)*] $of {
            $($methods)*

            #[pyo3(signature = (function, /))]
            fn __call__<'py>(slf: &Bound<'py, Self>, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::noun::decorate(slf, function)
            }
        });
    };
    (@$Face:ident [] [$Class:ident $Async:ident $Inner:ident $Base:ident [$($about:tt)*]] { $($methods:tt)* }) => {
        $($about)*
        #[pyo3::pyclass(frozen, extends = $Base, module = "zklock")]
        pub(crate) struct $Class;

        impl $Class {
            pub(crate) fn from_base(base: $Base) -> PyClassInitializer<Self> {
                PyClassInitializer::from(base).add_subclass(Self)
            }

            fn inner<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<$Inner> {
                &slf.as_super().get().inner
            }
        }

        $crate::noun::noun!(@methods $Class $Face { $($methods)* });
    };
    (@$Face:ident [] [$Class:ident $Async:ident $Inner:ident [$($about:tt)*]] { $($methods:tt)* }) => {
        $($about)*
        #[pyo3::pyclass(frozen, weakref, module = "zklock")]
        pub(crate) struct $Class {
            anchor: Py<$crate::calls::anchor::CallbackAnchor>,
            pub(crate) inner: Arc<$Inner>,
        }

        impl $Class {
            #[allow(dead_code, reason = "some only use it in methods, which have the object itself")]
            fn inner<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<$Inner> {
                &slf.get().inner
            }
        }

        impl $crate::noun::Noun for $Class {
            type Inner = $Inner;

            fn of(py: Python<'_>, inner: Arc<$Inner>) -> PyResult<Py<Self>> {
                let anchor = $crate::noun::Inner::anchor(&*inner, py)?;
                Py::new(py, Self { anchor, inner })
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

            fn __reduce__(&self) -> PyResult<()> {
                Err($crate::guest::error::unpicklable(stringify!($Class), "send its path, and make one in each process"))
            }
        });
    };
    (@methods $Class:ident $Face:ident { $($methods:tt)* }) => {
        impl $crate::noun::Class for $Class {
            const FACE: $crate::noun::Face = $crate::noun::Face::$Face;
            const NAME: &'static str = stringify!($Class);
        }

        #[pyo3::pymethods]
        impl $Class { $($methods)* }
    };
}
pub(crate) use noun;
