//! Options that a call is given by their names: those of its signature, which say how the core's table sets them.

use crate::guest::error::invalid;
use crate::guest::number::{count, seconds};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use zklock::Error;
use zklock::face::{Named, Value, unknown};

/// An option that was given.
pub(crate) struct Keyword<'py> {
    pub(crate) name: String,
    pub(crate) value: Bound<'py, PyAny>,
}

/// Returns the options that were given to this method, but for those that are left out with `None`.
pub(crate) fn keywords<'py>(
    method: &Bound<'py, PyAny>,
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Keyword<'py>>> {
    let signature = || method.getattr("__text_signature__")?.extract::<String>();
    given.map_or_else(|| Ok(Vec::new()), |given| of_signature(&signature()?, given))
}

/// Returns the same for what has this signature.
pub(crate) fn of_signature<'py>(signature: &str, given: &Bound<'py, PyDict>) -> PyResult<Vec<Keyword<'py>>> {
    let (_, options) = signature.trim_end_matches(')').split_once("*, ").unwrap_or_default();
    let defaults = options.split(", ").filter_map(|option| option.split_once('='));
    let mut keywords = Vec::with_capacity(given.len());
    for (name, value) in given {
        let name: String = name.extract()?;
        match defaults.clone().find(|(known, _)| *known == name) {
            None => {
                let error = unknown(&name, defaults.map(|(known, _)| known));
                return Err(PyTypeError::new_err(error.to_string()));
            }
            Some((_, "None")) if value.is_none() => {}
            Some(_) => keywords.push(Keyword { name, value }),
        }
    }
    Ok(keywords)
}

impl<'py> Keyword<'py> {
    pub(crate) fn get<T: FromPyObjectOwned<'py>>(&self) -> PyResult<T> {
        self.value.extract().map_err(|error: T::Error| {
            let (py, error) = (self.value.py(), error.into());
            if !error.is_instance_of::<PyTypeError>(py) {
                return error;
            }
            PyTypeError::new_err(format!("argument '{}': {}", self.name, error.value(py)))
        })
    }

    /// Sets it as the core's table says.
    pub(crate) fn set<T>(
        &self,
        table: &[Named<T>],
        subject: T,
        set: fn(T, &str, &str) -> Result<T, Error>,
    ) -> PyResult<T> {
        let (py, name) = (self.value.py(), self.name.replace('_', "-"));
        let text = match table.iter().find(|option| option.name == name).map(|option| option.value) {
            Some(Value::YesNo) => if self.get()? { "yes" } else { "no" }.to_owned(),
            Some(Value::Count) => count(py, &self.name, self.get()?)?.to_string(),
            Some(Value::Duration) => format!("{:?}", seconds(py, &self.name, self.get()?)?),
            _ => self.get()?,
        };
        // The error names it as the table does.
        set(subject, &name, &text)
            .map_err(|error| invalid(py, error.to_string().replacen(&name, &self.name, 1)))
    }
}
