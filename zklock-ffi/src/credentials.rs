//! As whom a client logs in, and who may use what it creates.

use crate::c_enum::c_enum;
use crate::call;
use crate::failure::Failure;
use crate::handle::Object;
use crate::options::{Options, zklock_options};
use crate::raw::{optional_text, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use zklock_core::{Access, Credentials};

c_enum! {
    /// Who may use the nodes that a client creates: those of locks and barriers, the nodes above
    /// them, limits, and what guarded writes create. All clients of a lock create, list, read and
    /// delete nodes there: so with all but ZKLOCK_ACCESS_OPEN all must log in as the same user.
    /// Nodes that are there already stay as they are.
    pub enum zklock_access {
        /// Everyone may do everything. This is the default.
        ZKLOCK_ACCESS_OPEN = 1,
        /// Those who are logged in as the creator may do everything, all others nothing.
        ZKLOCK_ACCESS_CREATOR_ALL = 2,
        /// Those who are logged in as the creator may do everything, and all others read.
        ZKLOCK_ACCESS_READ_OPEN = 3,
    }
}

/// Log in as this user, with ZooKeeper's scheme "digest", and as those that were added before. The
/// password crosses the network as it is: use TLS where others could listen. It is in no message
/// and no log line.
///
/// The servers keep no list of users: with a wrong password the client is somebody else, whom
/// access lists do not know.
///
/// @param options the options.
/// @param user without a colon.
/// @param password its password.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_digest(
    options: *mut zklock_options,
    user: *const c_char,
    password: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_digest", || {
        let credentials = Credentials::digest(text("user", user)?, text("password", password)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// The same with the users and passwords in a file: "user:password", one a line. It is read now,
/// and anew for each connection, so that passwords can be changed while the client runs. As long as
/// it cannot be read then, no connection is made.
///
/// @param options the options.
/// @param file its path.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or is not what it should be.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_digest_from_file(
    options: *mut zklock_options,
    file: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_digest_from_file", || {
        let credentials = Credentials::from_file(text("file", file)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// The same with "user:password" in an environment variable, which is read now.
///
/// @param options the options.
/// @param variable its name, such as "ZKLOCK_AUTH".
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or is not what it should be.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_digest_from_env(
    options: *mut zklock_options,
    variable: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_digest_from_env", || {
        let credentials = Credentials::from_env(text("variable", variable)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// Log in as this user by SASL, with its mechanism DIGEST-MD5, beside the users that were added for
/// the scheme "digest". To access lists it is "sasl:user". A client can log in by SASL as one user:
/// a second one is ZKLOCK_INVALID_ARGUMENT when a client is made. The password is in no message and
/// no log line, and does not cross the network; but a listener can try out passwords on what does:
/// use TLS.
///
/// The servers have a list of users, in the section "Server" of their JAAS file. With a wrong
/// password, with a user whom they do not know, and where they are not set up for SASL, making a
/// client is ZKLOCK_REFUSED. A password that is changed on the servers matters to the next
/// connection: as long as they refuse it there is none, and the session and its holds are lost.
///
/// @param options the options.
/// @param user of ASCII, without a colon, a quotation mark or a backslash.
/// @param password its password, of ASCII.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_sasl(
    options: *mut zklock_options,
    user: *const c_char,
    password: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_sasl", || {
        let credentials = Credentials::sasl(text("user", user)?, text("password", password)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// The same with the user and the password in a file: one line "user:password". It is read now, and
/// anew for each connection, so that the password can be changed while the client runs. As long as
/// it cannot be read then, no connection is made.
///
/// @param options the options.
/// @param file its path.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it cannot be read, or is not what it should be.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_sasl_from_file(
    options: *mut zklock_options,
    file: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_sasl_from_file", || {
        let credentials = Credentials::sasl_from_file(text("file", file)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// The same with "user:password" in an environment variable, which is read now.
///
/// @param options the options.
/// @param variable its name, such as "ZKLOCK_SASL".
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not set, or is not what it should be.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_sasl_from_env(
    options: *mut zklock_options,
    variable: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_sasl_from_env", || {
        let credentials = Credentials::sasl_from_env(text("variable", variable)?)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// Log in with the ticket that Kerberos has for this process, beside the users that were added for
/// the scheme "digest"; it counts as a login by SASL. To access lists it is the client's principal,
/// such as "sasl:billing@EXAMPLE.COM". The ticket is the one of the credential cache (KRB5CCNAME),
/// or comes from a keytab (KRB5_CLIENT_KTNAME), with which it is renewed. It is looked up anew for
/// each connection. Without one, making a client is ZKLOCK_REFUSED, or ZKLOCK_UNREACHABLE if no KDC
/// answers, and Kerberos' own words say why.
///
/// @param options the options.
/// @param service the first part of the servers' principal; may be NULL for "zookeeper".
/// @param host the second part of it; may be NULL for the host that is connected to.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one is empty, or has a space or one of @, / and \
///         in it; ZKLOCK_REFUSED if this library was built without Kerberos.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_add_kerberos(
    options: *mut zklock_options,
    service: *const c_char,
    host: *const c_char,
) -> zklock_status {
    call::status("zklock_options_add_kerberos", || {
        let (service, host) = (optional_text("service", service)?, optional_text("host", host)?);
        Options::table().find(options)?;
        let credentials = Credentials::kerberos(service.unwrap_or("zookeeper"), host)?;
        Options::change(options, |options| Ok(options.credentials(credentials)))
    })
}

/// Who may use the nodes that the client creates. Without a user to log in as, all but
/// ZKLOCK_ACCESS_OPEN is ZKLOCK_INVALID_ARGUMENT when a client is made.
///
/// @param options the options.
/// @param access one of zklock_access.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_access(
    options: *mut zklock_options,
    access: i32,
) -> zklock_status {
    call::status("zklock_options_set_access", || {
        let unknown = || Failure::argument(format!("there is no access with the number {access}"));
        let access = match zklock_access::find(access).ok_or_else(unknown)? {
            zklock_access::ZKLOCK_ACCESS_OPEN => Access::Open,
            zklock_access::ZKLOCK_ACCESS_CREATOR_ALL => Access::CreatorAll,
            zklock_access::ZKLOCK_ACCESS_READ_OPEN => Access::ReadOpen,
        };
        Options::change(options, |options| Ok(options.access(access)))
    })
}

/// The same with a list of one's own, as zkCli takes it. A client that it does not name is locked
/// out of what it creates.
///
/// @param options the options.
/// @param list entries "scheme:id:rights" with commas between them, the rights being some of the
///        letters cdrwa: such as "sasl:billing:cdrwa,world:anyone:r"; or "open", "creator-all" or
///        "read-open".
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if an entry is wrong: zklock_last_error() says which,
///         by its number.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_access_list(
    options: *mut zklock_options,
    list: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_access_list", || {
        let access: Access = text("list", list)?.parse()?;
        Options::change(options, |options| Ok(options.access(access)))
    })
}
