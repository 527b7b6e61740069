//! The statements of a fence in a database, as texts.

/// A database with the statements of a fence, as texts in its dialect.
///
/// # Examples
///
/// The first statement of each guarded transaction is [`raise`](Self::raise). Here `Transaction` is that of any client
/// library, such as sqlx:
///
/// ```no_run
/// use zklock::fence::Database;
///
/// # struct Transaction;
/// # impl Transaction {
/// #     async fn execute(&self, _: &str, _: (&str, &str, i64)) -> Result<u64, Box<dyn std::error::Error>> { Ok(1) }
/// # }
/// # async fn example(hold: &zklock::Hold, transaction: Transaction) -> Result<(), Box<dyn std::error::Error>> {
/// let (name, ensemble, token) = (hold.path(), hold.ensemble_id().await?, i64::try_from(hold.token().value())?);
/// let raise = Database::PostgreSql.raise();
/// if transaction.execute(raise, (name, &ensemble, token)).await? == 0 {
///     return Err("a later holder has written: roll back and stop".into());
/// }
/// // ... the writes, and the commit ...
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Database {
    /// PostgreSQL 9.5 or later.
    PostgreSql,
    /// MariaDB or MySQL, with InnoDB.
    MariaDb,
    /// SQLite 3.24 or later.
    Sqlite,
}

impl Database {
    /// Returns the statement that creates the table of fences, if it does not exist. If a path has more than 255 characters,
    /// choose a shorter name.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::fence::Database;
    ///
    /// assert!(Database::Sqlite.create_table().starts_with("CREATE TABLE IF NOT EXISTS zklock_fences"));
    /// ```
    pub const fn create_table(self) -> &'static str {
        match self {
            // By default these compare without regard to case, and their other engines cannot roll back.
            Self::MariaDb => {
                "CREATE TABLE IF NOT EXISTS zklock_fences (name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, \
                 ensemble VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, token BIGINT NOT NULL) ENGINE=InnoDB"
            }
            Self::PostgreSql | Self::Sqlite => {
                "CREATE TABLE IF NOT EXISTS zklock_fences (name VARCHAR(255) PRIMARY KEY, ensemble VARCHAR(64) NOT NULL, \
                 token BIGINT NOT NULL)"
            }
        }
    }

    /// Returns the statement that begins a guarded transaction. Its parameters are the lock's path, the ensemble's identity, and
    /// the token. It raises the lock's row to the token. If the row has a greater token, or one of another ensemble, it is
    /// refused: it changes no row in PostgreSQL and SQLite, and fails with error 1242 (`ER_SUBQUERY_NO_1_ROW`) in MariaDB and
    /// MySQL, whose number of changed rows depends on how a client connects.
    ///
    /// If a later statement fails, roll back and begin again. MariaDB and MySQL end the transaction after a deadlock, and
    /// SQLite ends it after some errors. Later statements on the same connection are then not fenced.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::fence::Database;
    ///
    /// assert!(Database::PostgreSql.raise().contains("VALUES ($1, $2, $3)"));
    /// assert!(Database::MariaDb.raise().contains("VALUES (?, ?, ?)"));
    /// ```
    pub const fn raise(self) -> &'static str {
        match self {
            Self::PostgreSql => {
                "INSERT INTO zklock_fences (name, ensemble, token) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET \
                 token = excluded.token WHERE zklock_fences.ensemble = excluded.ensemble AND zklock_fences.token <= excluded.token"
            }
            Self::MariaDb => {
                "INSERT INTO zklock_fences (name, ensemble, token) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE token = \
                 IF(ensemble = VALUES(ensemble) AND token <= VALUES(token), VALUES(token), (SELECT 1 UNION SELECT 2))"
            }
            Self::Sqlite => {
                "INSERT INTO zklock_fences (name, ensemble, token) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET \
                 token = excluded.token WHERE zklock_fences.ensemble = excluded.ensemble AND zklock_fences.token <= excluded.token"
            }
        }
    }

    /// Returns the statement that reads the ensemble and the token of a lock's row. Its parameter is the path. After a refusal it
    /// says which token has written.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::fence::Database;
    ///
    /// assert!(Database::Sqlite.look().starts_with("SELECT ensemble, token"));
    /// ```
    pub const fn look(self) -> &'static str {
        match self {
            Self::PostgreSql => "SELECT ensemble, token FROM zklock_fences WHERE name = $1",
            Self::MariaDb | Self::Sqlite => "SELECT ensemble, token FROM zklock_fences WHERE name = ?",
        }
    }
}
