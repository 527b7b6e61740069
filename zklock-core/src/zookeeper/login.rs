//! Logging in on a connection, and whether that has worked.
//!
//! A server that refuses a login closes the connection. But a server that is not set up for SASL sends an empty answer, which
//! the library takes for the end of the login, and the client has no identity. So the server is asked.

use crate::base::failure::Failure;
use crate::connect::credentials::{self, Credentials, Logins};
use crate::connect::options::ClientOptions;
#[cfg(feature = "tls")]
use crate::connect::tls::Tls;
#[cfg(feature = "kerberos")]
use crate::machine::times;
use zookeeper_client::{Client, Connector, SaslOptions};

/// A connector to this host with the current credentials, or why they cannot be had.
#[cfg_attr(
    not(feature = "kerberos"),
    expect(unused_variables, reason = "only Kerberos has to know the host")
)]
pub(super) async fn logging_in(options: &ClientOptions, host: &str) -> Result<Connector, Failure> {
    let logins = credentials::current(&options.credentials).await.map_err(Failure::Refused)?;
    let Logins { digests, sasl, .. } = logins;
    let mut connector = Client::connector();
    #[cfg(feature = "kerberos")]
    if let Some(kerberos) = logins.kerberos {
        let host = kerberos.host(name_of(host)).to_owned();
        let login = SaslOptions::gssapi().with_username(kerberos.service.clone()).with_hostname(host.clone());
        connector = connector.with_sasl(login);
        let bound = times::PATIENCE.of(options.session_timeout.min(options.connect_timeout));
        kerberos.fetch_ticket(&host, bound).await?;
    }
    if let Some(login) = sasl {
        connector = connector
            .with_sasl(SaslOptions::digest_md5(login.user().to_owned(), login.password().to_owned()));
    }
    Ok(digests.iter().fold(connector, |connector, digest| connector.with_auth("digest", digest.as_bytes())))
}

/// Returns the name in `name:port/chroot`.
#[cfg(feature = "kerberos")]
fn name_of(host: &str) -> &str {
    let server = host.split_once('/').map_or(host, |(server, _)| server);
    server.rsplit_once(':').map_or(server, |(name, _)| name)
}

/// Returns why the servers close the connection, and what to do.
pub(super) fn not_let_in(options: &ClientOptions) -> String {
    if let Some(sasl) = by_sasl(options) {
        let login = sasl.login();
        if sasl.is_kerberos() {
            return format!(
                "the servers refuse the login by {login}: see that their JAAS file has Krb5LoginModule in \
                 the section Server, with a keytab of that service, or log in with a scheme that they require \
                 (enforce.auth.schemes)"
            );
        }
        format!(
            "the servers refuse the login by {login}: correct the user or the password, here or in the \
             section Server of the servers' JAAS file, or log in with a scheme that they require \
             (enforce.auth.schemes)"
        )
    } else if options.credentials.is_empty() {
        "the servers only accept clients that log in: give the client credentials, for SASL or digest, as \
         the servers require"
            .to_owned()
    } else {
        "the servers do not accept the client's credentials: let them allow the scheme digest \
         (enforce.auth.schemes, DigestAuthenticationProvider), or log in with a scheme that they require, \
         such as SASL"
            .to_owned()
    }
}

/// Returns why a client that a server lets in does not have the identity it wants, and what to do.
pub(super) fn not_logged_in(options: &ClientOptions, host: &str) -> String {
    let sasl = by_sasl(options);
    let login = sasl.map_or_else(|| "SASL".to_owned(), Credentials::login);
    let wrong = match sasl.is_some_and(Credentials::is_kerberos) {
        true => "give it Krb5LoginModule and a keytab of that service",
        false => "correct the user or the password",
    };
    format!(
        "{host} does not log in the client by {login}, but lets it in without a user: set up the server for \
         SASL (a section Server in its JAAS file, SASLAuthenticationProvider as an authProvider), or if it \
         is, and lets in all (allowSaslFailedClients), {wrong}"
    )
}

pub(super) fn has_sasl(options: &ClientOptions) -> bool {
    by_sasl(options).is_some()
}

fn by_sasl(options: &ClientOptions) -> Option<&Credentials> {
    options.credentials.iter().find(|credentials| credentials.is_sasl())
}

/// Whether the servers may also know the client by something other than SASL.
pub(super) fn has_other_names(options: &ClientOptions) -> bool {
    #[cfg(feature = "tls")]
    if options.tls.as_ref().is_some_and(Tls::has_identity) {
        return true;
    }
    options.credentials.len() > 1
}
