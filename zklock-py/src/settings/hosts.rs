//! The servers, in any form that users may write.

use crate::guest::error::invalid;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

/// `host:port,host:port/chroot`, from such a string, or from an iterable of strings and of pairs of a host and a port.
/// As with kazoo, the last may be a `/chroot`.
pub(crate) struct Hosts(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for Hosts {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            return value.extract().map(Self);
        }
        let py = value.py();
        let wrong = |what: &Bound<'_, PyAny>| {
            let kind = what.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "hosts is a string, \"zk1:2181,zk2:2181\", or a list of such, or of pairs of a host and a port; it is, \
                 or has in it, a {kind}"
            ))
        };
        if value.is_instance_of::<PyBytes>() {
            return Err(wrong(&value));
        }
        let mut hosts = String::new();
        for one in value.try_iter().map_err(|_| wrong(&value))? {
            let one = one?;
            let text = match one.cast::<PyTuple>() {
                Ok(pair) => pair.extract().map(joined).map_err(|_| wrong(&one))?,
                Err(_) => one.extract().map_err(|_| wrong(&one))?,
            };
            if hosts.contains('/') {
                let message =
                    format!("the hosts {hosts} and {text}: the chroot must come after the last host");
                return Err(invalid(py, message));
            }
            if !hosts.is_empty() && !text.starts_with('/') {
                hosts.push(',');
            }
            hosts.push_str(&text);
        }
        Ok(Self(hosts))
    }
}

fn joined((host, port): (String, u16)) -> String {
    // An address with colons and without brackets.
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
