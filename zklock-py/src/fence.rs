//! The statements of a fence in a database, which the module `zklock.fence` uses.

use pyo3::prelude::*;
use zklock::fence::Database;

/// Returns the statements that create the table, raise a row, and read it; `None` for an unknown dialect.
#[pyfunction]
pub(crate) fn fence_sql(dialect: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let database = match dialect {
        "postgresql" => Database::PostgreSql,
        "mysql" => Database::MariaDb,
        "sqlite" => Database::Sqlite,
        _ => return None,
    };
    Some((database.create_table(), database.raise(), database.look()))
}
