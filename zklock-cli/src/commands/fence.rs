//! `zklock fence`: for resources that refuse the write of a holder that is late.

use clap::{Args, Subcommand, ValueEnum};
use zklock_core::fence;

use crate::failure::Failure;
use crate::output::print;

/// Let a resource refuse the write of a holder that is late
#[derive(Args, Debug)]
pub(crate) struct Fence {
    #[command(subcommand)]
    resource: Resource,
}

#[derive(Subcommand, Debug)]
enum Resource {
    /// Print the table of fences for a database, with the statements that use it as comments
    ///
    /// zklock fence sql postgresql | psql
    Sql { database: Database },
}

#[derive(Clone, Copy, ValueEnum, Debug)]
enum Database {
    Postgresql,
    #[value(alias = "mysql")]
    Mariadb,
    Sqlite,
}

impl Fence {
    pub(crate) fn execute(&self) -> Result<(), Failure> {
        let Resource::Sql { database } = self.resource;
        let (database, refusal) = match database {
            Database::Postgresql => (fence::Database::PostgreSql, "changes no row"),
            Database::Mariadb => (fence::Database::MariaDb, "fails with error 1242"),
            Database::Sqlite => (fence::Database::Sqlite, "changes no row"),
        };
        print(&format!(
            "{};\n\n\
             -- The first statement of each guarded transaction, with the lock's path, the ensemble's identity and the token.\n\
             -- If it {refusal}, roll back and stop: a later holder has written, or the row is of another ensemble.\n\
             -- {};\n\n\
             -- What has the row then? The parameter is the path.\n\
             -- {};\n\n\
             -- If the ensemble was replaced, or restored from a backup: once all holders that are older have ended.\n\
             -- DELETE FROM zklock_fences;\n",
            database.create_table(),
            database.raise(),
            database.look(),
        ))
    }
}
