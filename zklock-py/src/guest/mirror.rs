//! Enums and tuples that also exist in Python, and checks that both sides agree.
//!
//! If a value of the core has no member in Python, this crate does not compile. If the classes in Python have other
//! members or fields than those named here, the package cannot be imported.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::marker::PhantomData;

/// An enum of the core that also exists in Python.
pub(crate) trait Mirrored: Copy + 'static {
    /// The class in Python.
    const CLASS: &'static str;
    /// The names of its members, in the order of `place`.
    const MEMBERS: &'static [&'static str];

    fn place(self) -> usize;

    /// Returns the values of the class's members, if the core defines those too.
    fn texts() -> Vec<(usize, String)> {
        Vec::new()
    }
}

/// A function with a result for each value of an enum of the core. A value without a result does not compile.
macro_rules! table {
    ($(#[$about:meta])* fn $name:ident($Enum:ident) -> $Result:ty {
        $($Value:ident $(($($inner:tt)*))? => $result:expr,)+
    }) => {
        $(#[$about])*
        #[allow(unreachable_patterns, reason = "the enum may grow: then the constant below does not compile")]
        const fn $name(value: $Enum) -> $Result {
            match value {
                $($Enum::$Value $(($($inner)*))? => $result,)+
                _ => panic!("there is nothing for this value"),
            }
        }

        const _: () = {
            let mut at = 0;
            while at < $Enum::ALL.len() {
                $name($Enum::ALL[at]);
                at += 1;
            }
        };
    };
}

pub(crate) use table;

/// Names the members for the values of an enum of the core. `texts` says that these texts are also their values in
/// Python.
macro_rules! mirrored {
    ($Enum:ident { $($Value:ident $(($($inner:tt)*))? => $MEMBER:ident,)+ } $($texts:ident)?) => {
        const _: () = {
            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names in Python")]
            enum Member { $($MEMBER,)+ }

            $crate::guest::mirror::table! {
                fn place($Enum) -> usize {
                    $($Value $(($($inner)*))? => Member::$MEMBER as usize,)+
                }
            }

            impl $crate::guest::mirror::Mirrored for $Enum {
                const CLASS: &'static str = stringify!($Enum);
                const MEMBERS: &'static [&'static str] = &[$(stringify!($MEMBER)),+];

                fn place(self) -> usize {
                    place(self)
                }

                $(fn $texts() -> Vec<(usize, String)> {
                    Self::ALL.iter().map(|value| (place(*value), value.to_string())).collect()
                })?
            }
        };
    };
}

pub(crate) use mirrored;

/// The members of such an enum, fetched once, because looking one up runs code that is written in Python.
pub(crate) struct Members<E> {
    members: Vec<Py<PyAny>>,
    of: PhantomData<fn(E)>,
}

impl<E: Mirrored> Members<E> {
    pub(crate) fn load(module: &Bound<'_, PyModule>) -> PyResult<Self> {
        let class = module.getattr(E::CLASS)?;
        let members = E::MEMBERS.iter().map(|name| class.getattr(*name));
        let members = members.collect::<PyResult<Vec<_>>>()?;
        let mut agrees = class.len()? == members.len();
        for (place, text) in E::texts() {
            agrees &= members[place].getattr("value")?.eq(text)?;
        }
        check(E::CLASS, agrees)?;
        Ok(Self { members: members.into_iter().map(Bound::unbind).collect(), of: PhantomData })
    }

    pub(crate) fn get(&self, py: Python<'_>, value: E) -> Py<PyAny> {
        self.members[value.place()].clone_ref(py)
    }
}

/// A named tuple of Python.
pub(crate) struct Named {
    class: Py<PyAny>,
    /// `tuple.__new__`, because that of a named tuple is written in Python.
    make: Py<PyAny>,
}

impl Named {
    pub(crate) fn load(module: &Bound<'_, PyModule>, class: &str, fields: &[&str]) -> PyResult<Self> {
        let py = module.py();
        let make = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        let made = module.getattr(class)?;
        check(class, made.getattr("_fields")?.extract::<Vec<String>>()? == fields)?;
        Ok(Self { class: made.unbind(), make })
    }

    /// Makes a tuple of these values, in the order of the fields.
    pub(crate) fn make<'py, V>(&self, py: Python<'py>, values: V) -> PyResult<Py<PyAny>>
    where
        V: IntoPyObject<'py>,
    {
        self.make.call1(py, (&self.class, values))
    }
}

/// Names the fields of a named tuple, and their values.
macro_rules! named_tuple {
    ($(#[$about:meta])* fn $name:ident($py:ident, $value:ident: $Type:ty) -> $FIELDS:ident { $($field:ident: $given:expr,)+ }) => {
        const $FIELDS: &[&str] = &[$(stringify!($field)),+];

        $(#[$about])*
        pub(crate) fn $name($py: Python<'_>, $value: $Type) -> PyResult<Py<PyAny>> {
            Classes::of($py)?.$name.make($py, ($($given,)+))
        }
    };
}

pub(crate) use named_tuple;

fn check(class: &str, agrees: bool) -> PyResult<()> {
    if agrees {
        return Ok(());
    }
    let message =
        format!("zklock is not installed as one: its {class} in Python is not that of the native module");
    Err(PyImportError::new_err(message))
}
