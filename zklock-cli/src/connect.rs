//! How the ensemble is reached: options that all commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use serde::{Deserialize, Serialize};
use zklock_core::{Access, Client, ClientOptions, Credentials, PassPhrase, Tls};

use crate::duration;
use crate::failure::Failure;

/// The variables that hold secrets. They are read by the library, and are in no help text's default.
const AUTH: &str = "ZKLOCK_AUTH";
const SASL: &str = "ZKLOCK_SASL";
const PASS_PHRASE: &str = "ZKLOCK_PASS_PHRASE";

/// How to reach the ensemble. Passwords are not options, because others see the command line: put USER:PASSWORD into
/// ZKLOCK_AUTH or ZKLOCK_SASL, or into a file.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The servers, host:port,host:port; a /chroot may follow
    #[arg(long, short = 'H', env = "ZKLOCK_HOSTS", global = true)]
    pub(crate) hosts: Option<String>,

    /// The session timeout to ask for: after a crash of the machine the lock is free that much later [default: 10s]
    #[arg(long, env = "ZKLOCK_SESSION_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, global = true)]
    pub(crate) session_timeout: Option<Duration>,

    /// How long to try to reach a server [default: 10s]
    #[arg(long, env = "ZKLOCK_CONNECT_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, global = true)]
    pub(crate) connect_timeout: Option<Duration>,

    /// What others see as the holder's name [default: host/pid]
    #[arg(long, env = "ZKLOCK_IDENTITY", value_name = "NAME", global = true)]
    identity: Option<String>,

    /// A file with USER:PASSWORD, for digest authentication (or put that into ZKLOCK_AUTH)
    #[arg(long, env = "ZKLOCK_AUTH_FILE", value_name = "FILE", global = true)]
    auth_file: Option<PathBuf>,

    /// A file with USER:PASSWORD, for SASL (or put that into ZKLOCK_SASL)
    #[arg(long, env = "ZKLOCK_SASL_FILE", value_name = "FILE", global = true)]
    sasl_file: Option<PathBuf>,

    /// Who may use what is created: open, creator-all, or a list such as sasl:billing:cdrwa,world:anyone:r
    #[arg(long, env = "ZKLOCK_ACCESS", hide_env_values = true, value_name = "ACCESS", value_parser = access, global = true)]
    // It may have hashes of passwords. What has the rest from us creates nothing.
    #[serde(skip)]
    access: Option<Access>,

    /// Connect with TLS, and trust the authorities that the system trusts
    #[arg(long, env = "ZKLOCK_TLS", global = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) tls: bool,

    /// Connect with TLS, and trust the authorities in this PEM file
    #[arg(long, env = "ZKLOCK_CA", value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,

    /// The client's certificate, a PEM file
    #[arg(long, env = "ZKLOCK_CERT", value_name = "FILE", requires = "key", global = true)]
    cert: Option<PathBuf>,

    /// Its key, a PEM file; the pass phrase of an encrypted one is in ZKLOCK_PASS_PHRASE
    #[arg(long, env = "ZKLOCK_KEY", value_name = "FILE", requires = "cert", global = true)]
    key: Option<PathBuf>,

    /// Whether the servers are named by the option, and not by a variable.
    #[arg(skip)]
    #[serde(skip)]
    names_hosts: bool,
}

fn access(text: &str) -> Result<Access, String> {
    text.parse().map_err(|error: zklock_core::Error| error.to_string())
}

impl Connection {
    /// Says where its values come from.
    pub(crate) fn learn_sources(&mut self, matches: &ArgMatches) {
        self.names_hosts = matches.value_source("hosts") == Some(ValueSource::CommandLine);
    }

    /// The servers, if the option names them.
    pub(crate) fn hosts_given(&self) -> Option<&String> {
        self.hosts.as_ref().filter(|_| self.names_hosts)
    }

    pub(crate) fn hosts(&self) -> Result<&str, Failure> {
        self.hosts.as_deref().ok_or_else(|| {
            Failure::usage("no servers are given: name them with --hosts, or in the variable ZKLOCK_HOSTS")
        })
    }

    pub(crate) fn options(&self) -> Result<ClientOptions, Failure> {
        let mut options = ClientOptions::new(self.hosts()?)?;
        if let Some(timeout) = self.session_timeout {
            options = options.session_timeout(timeout)?;
        }
        if let Some(timeout) = self.connect_timeout {
            options = options.connect_timeout(timeout);
        }
        if let Some(identity) = &self.identity {
            options = options.identity(identity)?;
        }
        for credentials in self.credentials()? {
            options = options.credentials(credentials);
        }
        if let Some(access) = &self.access {
            options = options.access(access.clone());
        }
        if let Some(tls) = self.encryption()? {
            options = options.tls(tls);
        }
        Ok(options)
    }

    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        Ok(Client::connect(self.options()?).await?)
    }

    /// Does something with a client, and closes it whatever comes of that.
    pub(crate) async fn with_client<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.client().await?;
        let outcome = work(&client).await;
        client.close().await;
        outcome
    }

    fn credentials(&self) -> Result<Vec<Credentials>, Failure> {
        let mut all = Vec::new();
        if let Some(file) = &self.auth_file {
            all.push(Credentials::from_file(file)?);
        }
        if is_set(AUTH) {
            all.push(Credentials::from_env(AUTH)?);
        }
        if let Some(file) = &self.sasl_file {
            all.push(Credentials::sasl_from_file(file)?);
        }
        if is_set(SASL) {
            all.push(Credentials::sasl_from_env(SASL)?);
        }
        Ok(all)
    }

    fn encryption(&self) -> Result<Option<Tls>, Failure> {
        let mut tls = match &self.ca {
            Some(authorities) => Tls::from_file(authorities)?,
            None if self.tls => Tls::system()?,
            None if self.cert.is_some() => {
                return Err(Failure::usage("--cert is for TLS: give --ca or --tls as well"));
            }
            None => return Ok(None),
        };
        if let (Some(certificate), Some(key)) = (&self.cert, &self.key) {
            if is_set(PASS_PHRASE) {
                tls = tls.pass_phrase(PassPhrase::from_env(PASS_PHRASE)?);
            }
            tls = tls.identity_from_files(certificate, key)?;
        }
        Ok(Some(tls))
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}
