//! Logins, and the access lists of what a client creates.

use crate::c_enum::{CEnum, c_enum};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::options::{Options, zklock_options};
use crate::raw::{optional_text, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use zklock_core::{Access, Credentials};

c_enum! {
    /// Who may use the nodes that a client creates: nodes of locks and barriers, the nodes above
    /// them, limits, and nodes created by guarded writes. All clients of a lock create, list, read
    /// and delete nodes there, so with anything but ZKLOCK_ACCESS_OPEN they must all log in as the
    /// same user. Nodes that already exist keep their access list.
    pub enum zklock_access {
        /// Everyone may do everything. This is the default.
        ZKLOCK_ACCESS_OPEN = 1,
        /// Clients logged in as the creator may do everything, all others nothing.
        ZKLOCK_ACCESS_CREATOR_ALL = 2,
        /// Clients logged in as the creator may do everything, all others may read.
        ZKLOCK_ACCESS_READ_OPEN = 3,
    }
}

export! {
    /// Logs the client in as a user, with ZooKeeper's scheme "digest". You can add several users: the
    /// client is then logged in as all of them. The password crosses the network in plain text, so use
    /// TLS if others could listen. It never appears in an error message or in the log.
    ///
    /// The servers keep no list of users, so a wrong password is not an error. With it, the client
    /// is another user, which no access list names.
    ///
    /// @param options the options.
    /// @param user the name, without a colon.
    /// @param password the user's password.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_add_digest(
        options: *mut zklock_options,
        user: *const c_char,
        password: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::digest(text("user", user)?, text("password", password)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in as zklock_options_add_digest does, with the users and passwords in a file:
    /// one "user:password" per line. The file is read now, and again for each connection, so that
    /// passwords can be changed while the client runs. If it cannot be read at that time, the client
    /// makes no new connection.
    ///
    /// @param options the options.
    /// @param file the path of the file.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the file cannot be read, or has another format.
    pub fn zklock_options_add_digest_from_file(
        options: *mut zklock_options,
        file: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::from_file(text("file", file)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in as zklock_options_add_digest does, with the "user:password" in an environment
    /// variable. The variable is read now.
    ///
    /// @param options the options.
    /// @param variable the name of the variable, such as "ZKLOCK_AUTH".
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the variable is not set, or has another format.
    pub fn zklock_options_add_digest_from_env(
        options: *mut zklock_options,
        variable: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::from_env(text("variable", variable)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in as a user by SASL, with the mechanism DIGEST-MD5, in addition to users of the
    /// scheme "digest". In access lists the user is "sasl:user". A client can log in as only one user
    /// by SASL: if there is a second one, making the client gives ZKLOCK_INVALID_ARGUMENT. The password
    /// does not cross the network, and never appears in an error message or in the log. But a listener
    /// can use what crosses the network to test guesses of the password, so use TLS.
    ///
    /// The servers list their users in the section "Server" of their JAAS file. Making a client gives
    /// ZKLOCK_REFUSED if the password is wrong, if the servers do not know the user, or if they are not
    /// set up for SASL. A password that is changed on the servers takes effect with the next
    /// connection. If they refuse the old one, the client cannot reconnect, and loses its session and
    /// its holds.
    ///
    /// @param options the options.
    /// @param user the name, in ASCII, without colons, quotation marks or backslashes.
    /// @param password the user's password, in ASCII.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_add_sasl(
        options: *mut zklock_options,
        user: *const c_char,
        password: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::sasl(text("user", user)?, text("password", password)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in as zklock_options_add_sasl does, with the user and password in a file: a
    /// single line "user:password". The file is read now, and again for each connection, so that the
    /// password can be changed while the client runs. If it cannot be read at that time, the client
    /// makes no new connection.
    ///
    /// @param options the options.
    /// @param file the path of the file.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the file cannot be read, or has another format.
    pub fn zklock_options_add_sasl_from_file(
        options: *mut zklock_options,
        file: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::sasl_from_file(text("file", file)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in as zklock_options_add_sasl does, with the "user:password" in an environment
    /// variable. The variable is read now.
    ///
    /// @param options the options.
    /// @param variable the name of the variable, such as "ZKLOCK_SASL".
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the variable is not set, or has another format.
    pub fn zklock_options_add_sasl_from_env(
        options: *mut zklock_options,
        variable: *const c_char,
    ) -> zklock_status {
        let credentials = Credentials::sasl_from_env(text("variable", variable)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Logs the client in with the Kerberos ticket of this process, in addition to users of the scheme
    /// "digest". This counts as the client's login by SASL. In access lists the user is the client's
    /// principal, such as "sasl:billing@EXAMPLE.COM".
    ///
    /// The ticket comes from the credential cache (KRB5CCNAME), or from a keytab (KRB5_CLIENT_KTNAME),
    /// which is also used to renew it. It is looked up again for each connection. If there is no
    /// ticket, making the client gives ZKLOCK_REFUSED, or ZKLOCK_UNREACHABLE if no KDC answers. The
    /// message includes Kerberos' own explanation.
    ///
    /// @param options the options.
    /// @param service the first part of the servers' principal; NULL for "zookeeper".
    /// @param host the second part of the servers' principal; NULL for the host that the client
    ///         connects to.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if service or host is empty, or contains a space or
    ///         one of @, / and \; ZKLOCK_REFUSED if this library was built without Kerberos.
    pub fn zklock_options_add_kerberos(
        options: *mut zklock_options,
        service: *const c_char,
        host: *const c_char,
    ) -> zklock_status {
        let (service, host) = (optional_text("service", service)?, optional_text("host", host)?);
        Options::table().find(options)?;
        let credentials = Credentials::kerberos(service.unwrap_or("zookeeper"), host)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))?;
    }

    /// Sets who may use the nodes that the client creates. Anything but ZKLOCK_ACCESS_OPEN needs a user
    /// to log in as: without one, making the client gives ZKLOCK_INVALID_ARGUMENT.
    ///
    /// @param options the options.
    /// @param access one of zklock_access.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_access(options: *mut zklock_options, access: i32) -> zklock_status {
        let unknown = || Failure::argument(format!("there is no access with the number {access}"));
        let access = match zklock_access::find(access).ok_or_else(unknown)? {
            zklock_access::ZKLOCK_ACCESS_OPEN => Access::Open,
            zklock_access::ZKLOCK_ACCESS_CREATOR_ALL => Access::CreatorAll,
            zklock_access::ZKLOCK_ACCESS_READ_OPEN => Access::ReadOpen,
        };
        Options::change(options, |options| Ok(options.access(access)))?;
    }

    /// Sets who may use the nodes that the client creates, as an access list in the format of zkCli. A
    /// client that the list does not name is locked out of the nodes that it creates.
    ///
    /// @param options the options.
    /// @param list entries "scheme:id:rights", separated by commas. The rights are some of the letters
    ///         cdrwa, as in "sasl:billing:cdrwa,world:anyone:r". Instead of entries it may be "open",
    ///         "creator-all" or "read-open".
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if an entry is wrong: zklock_last_error() gives the
    ///         number of the entry.
    pub fn zklock_options_set_access_list(
        options: *mut zklock_options,
        list: *const c_char,
    ) -> zklock_status {
        let access: Access = text("list", list)?.parse()?;
        Options::change(options, |options| Ok(options.access(access)))?;
    }
}
