//! Fences: databases and folders refuse the write of a holder that is late.

use crate::c_enum::c_enum;
use crate::convert::{Given, c_string};
use crate::export::export;
use crate::handle::Object;
use crate::hold::{Held, zklock_hold};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;
use zklock::fence::{self, Database, Stamp};

c_enum! {
    /// The databases for which zklock_fence_sql has statements.
    pub enum zklock_database {
        /// PostgreSQL 9.5 or later.
        ZKLOCK_DATABASE_POSTGRESQL = 1,
        /// MariaDB or MySQL, with InnoDB.
        ZKLOCK_DATABASE_MARIADB = 2,
        /// SQLite 3.24 or later.
        ZKLOCK_DATABASE_SQLITE = 3,
    }
}

c_enum! {
    /// The statements of zklock_fence_sql.
    pub enum zklock_fence_statement {
        /// Creates the table of fences, if it is not there.
        ZKLOCK_FENCE_CREATE_TABLE = 1,
        /// Begins a guarded transaction. Its parameters are the lock's path (zklock_hold_path), the
        /// ensemble's identity (zklock_client_ensemble_id) and the token (zklock_hold_token). It raises
        /// the lock's row to the token. If a later holder has written, or the row is of another ensemble,
        /// it is refused: it changes no row in PostgreSQL and SQLite, and fails with error 1242 in
        /// MariaDB and MySQL. Then roll back and stop.
        ZKLOCK_FENCE_RAISE = 2,
        /// Reads the ensemble and the token of a row. Its parameter is the path.
        ZKLOCK_FENCE_LOOK = 3,
    }
}

export! {
    /// Gets a statement with which a database refuses the write of a late holder: a process that was
    /// paused between its last check of the hold and its write. The database keeps the greatest token
    /// of each lock in a table. The first statement of each guarded transaction raises the lock's row,
    /// or is refused. docs/fencing.md explains how to use it.
    ///
    ///     const char *raise;
    ///
    ///     if (zklock_fence_sql(ZKLOCK_DATABASE_POSTGRESQL, ZKLOCK_FENCE_RAISE, &raise) != ZKLOCK_OK) return fail(zklock_last_error());
    ///
    /// @param database one of zklock_database.
    /// @param statement one of zklock_fence_statement.
    /// @param[out] text the statement. It is valid for the life of the process.
    /// @return ZKLOCK_OK.
    pub fn zklock_fence_sql(
        database: Given<zklock_database>,
        statement: Given<zklock_fence_statement>,
        text: *mut *const c_char,
    ) -> zklock_status {
        let text = out("text", text)?;
        text.set(statement_of(database.find()?, statement.find()?).as_ptr());
    }

    /// Replaces a file with a new one that is ready, unless a later holder has written to that folder.
    /// The file ".zklock-fence" in the target's folder keeps the greatest token, and is locked with
    /// flock meanwhile. Readers see the old file or the new one, always complete, even after a crash.
    /// The call waits while another holder writes. The first call also waits for the servers: see
    /// zklock_client_ensemble_id.
    ///
    ///     if (zklock_hold_publish(hold, "reports/.sales.new", "reports/sales.csv") != ZKLOCK_OK) return fail(zklock_last_error());
    ///
    /// It works on one machine, on a local file system. It does not work on NFS.
    ///
    /// @param hold the hold.
    /// @param staged the path of the file that is ready. It must be in the same file system, best in the
    ///         same folder. The call syncs and renames it. If the call fails, the file stays.
    /// @param target the path of the file that it replaces, or that does not exist yet.
    /// @return ZKLOCK_OK; ZKLOCK_STALE_TOKEN if a later holder has written: stop; ZKLOCK_OTHER_ENSEMBLE
    ///         if the folder keeps the token of another ensemble; ZKLOCK_REFUSED if the system refuses an
    ///         operation; ZKLOCK_UNREACHABLE if the servers do not give the identity of the ensemble;
    ///         ZKLOCK_LOST if the hold is lost, and that identity was not asked for before;
    ///         ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT.
    pub fn zklock_hold_publish(
        hold: *mut zklock_hold,
        staged: *const c_char,
        target: *const c_char,
    ) -> zklock_status {
        let (staged, target) = (text("staged", staged)?, text("target", target)?);
        let held = Held::table().find(hold)?;
        let inner = held.inner();
        let stamp = Stamp::new(inner.path(), &inner.ensemble_id().wait()?, inner.token().value())?;
        fence::publish(&stamp, staged.as_ref(), target.as_ref())?;
    }
}

fn statement_of(known: zklock_database, wanted: zklock_fence_statement) -> &'static CString {
    use zklock_database::{ZKLOCK_DATABASE_MARIADB, ZKLOCK_DATABASE_POSTGRESQL, ZKLOCK_DATABASE_SQLITE};
    use zklock_fence_statement::{ZKLOCK_FENCE_CREATE_TABLE, ZKLOCK_FENCE_LOOK, ZKLOCK_FENCE_RAISE};
    static TEXTS: [[OnceLock<CString>; 3]; 3] = [const { [const { OnceLock::new() }; 3] }; 3];
    let dialect = match known {
        ZKLOCK_DATABASE_POSTGRESQL => Database::PostgreSql,
        ZKLOCK_DATABASE_MARIADB => Database::MariaDb,
        ZKLOCK_DATABASE_SQLITE => Database::Sqlite,
    };
    let text = match wanted {
        ZKLOCK_FENCE_CREATE_TABLE => dialect.create_table(),
        ZKLOCK_FENCE_RAISE => dialect.raise(),
        ZKLOCK_FENCE_LOOK => dialect.look(),
    };
    TEXTS[known as usize - 1][wanted as usize - 1].get_or_init(|| c_string(text))
}
