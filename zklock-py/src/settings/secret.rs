//! Secrets: a text, a file with it, or an environment variable.

/// Writes the class of a secret, from how the core makes it.
macro_rules! secret {
    (
        $(#[$about:meta])*
        struct $Class:ident($Inner:ty) = $new:expr => ($($word:ident),+);
        $Same:ident {
            $(#[$about_file:meta])*
            fn from_file = $from_file:expr;
            $(#[$about_env:meta])*
            fn from_env = $from_env:expr;
        }
    ) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, module = "zklock")]
        pub(crate) struct $Class($Inner);

        impl $Class {
            fn made(py: pyo3::Python<'_>, made: Result<$Inner, zklock::Error>) -> pyo3::PyResult<Self> {
                made.map(Self).map_err(|error| $crate::guest::error::raised(py, &error))
            }
        }

        #[pyo3::pymethods]
        impl $Class {
            #[new]
            fn new(py: pyo3::Python<'_>, $($word: &str),+) -> pyo3::PyResult<Self> {
                Self::made(py, $new($($word),+))
            }

            $(#[$about_file])*
            #[staticmethod]
            fn from_file(py: pyo3::Python<'_>, path: std::path::PathBuf) -> pyo3::PyResult<Self> {
                Self::made(py, py.detach(|| $from_file(path)))
            }

            $(#[$about_env])*
            #[staticmethod]
            fn from_env(py: pyo3::Python<'_>, variable: &str) -> pyo3::PyResult<Self> {
                Self::made(py, $from_env(variable))
            }

            fn __repr__(&self) -> String {
                format!(concat!("<zklock.", stringify!($Class), ": {:?}>"), self.0)
            }

            fn __reduce__(&self) -> pyo3::PyResult<()> {
                Err($crate::guest::error::unpicklable(stringify!($Class), "send the path of its file"))
            }
        }
    };
}
pub(crate) use secret;
