//! `zklock fence`: for resources that refuse the write of a holder that is late.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use zklock::fence;

use crate::failure::Failure;
use crate::output::print;

/// Make a resource refuse the writes of late holders
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

    /// Replace a file with a new one that is ready, unless a later holder has written to that folder
    ///
    /// In the command of `zklock run --fence`. The staged file must be in the same file system. It is synced and renamed. The folder
    /// keeps the greatest token in .zklock-fence. If a later holder has written, nothing is done, and the code is 122.
    Publish {
        /// The file that is ready
        staged: PathBuf,
        /// The file that it replaces
        target: PathBuf,
        /// The lock's path
        #[arg(long, env = "ZKLOCK_LOCK", value_name = "PATH")]
        name: String,
        /// The identity of the ensemble
        #[arg(long, env = "ZKLOCK_ENSEMBLE")]
        ensemble: String,
        /// The token of the hold
        #[arg(long, env = "ZKLOCK_TOKEN")]
        token: u64,
    },
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
        match &self.resource {
            Resource::Sql { database } => database.show(),
            Resource::Publish { staged, target, name, ensemble, token } => {
                let stamp = fence::Stamp::new(name, ensemble, *token)?;
                Ok(fence::publish(&stamp, staged, target)?)
            }
        }
    }
}

impl Database {
    fn show(self) -> Result<(), Failure> {
        let (database, refusal) = match self {
            Self::Postgresql => (fence::Database::PostgreSql, "changes no row"),
            Self::Mariadb => (fence::Database::MariaDb, "fails with error 1242"),
            Self::Sqlite => (fence::Database::Sqlite, "changes no row"),
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
