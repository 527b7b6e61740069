//! How the ensemble is reached: options that all commands share.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use zklock_core::face::times;
use zklock_core::{Access, Client, ClientOptions, Credentials, ErrorKind, PassPhrase, Tls};

use crate::duration;
use crate::failure::Failure;

/// The variables that contain secrets. The library reads them, and no help text shows them as a default.
const AUTH: &str = "ZKLOCK_AUTH";
const SASL: &str = "ZKLOCK_SASL";
const PASS_PHRASE: &str = "ZKLOCK_PASS_PHRASE";

/// The passwords of a configuration file. The variables of these names override them.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    auth: Option<String>,
    sasl: Option<String>,
    pass_phrase: Option<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    pub(crate) const NAMES: [&str; 3] = ["auth", "sasl", "pass-phrase"];

    pub(crate) fn named(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "auth" => Some(&mut self.auth),
            "sasl" => Some(&mut self.sasl),
            "pass-phrase" => Some(&mut self.pass_phrase),
            _ => None,
        }
    }

    /// Checks whether the library takes them.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.auth.as_deref().map(|text| login(text, Credentials::digest)).transpose()?;
        self.sasl.as_deref().map(|text| login(text, Credentials::sasl)).transpose()?;
        self.pass_phrase.as_deref().map(PassPhrase::new).transpose()?;
        Ok(())
    }
}

/// How to reach the ensemble. Passwords are not options, because others see the command line: put USER:PASSWORD into
/// ZKLOCK_AUTH or ZKLOCK_SASL, or into a file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// A file with options of the connection [default: ~/.config/zklock.conf, else /etc/zklock.conf]
    #[arg(long, env = "ZKLOCK_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,

    /// The servers, host:port,host:port; a /chroot may follow
    #[arg(long, short = 'H', env = hosts_variable(), global = true)]
    pub(crate) hosts: Option<String>,

    /// The session timeout to ask for: after a crash of the machine, the lock is free when this time is over
    /// [default: 10s]
    #[arg(long, env = "ZKLOCK_SESSION_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, global = true)]
    pub(crate) session_timeout: Option<Duration>,

    /// How long to try to reach a server [default: 10s]
    #[arg(long, env = "ZKLOCK_CONNECT_TIMEOUT", value_name = "DURATION", value_parser = duration::parse, global = true)]
    pub(crate) connect_timeout: Option<Duration>,

    /// How soon to learn of a loss that no server reports: up to a fifth of the session timeout, which halves the writes
    /// [default: a tenth of the session timeout]
    #[arg(long, env = "ZKLOCK_TOLD_WITHIN", value_name = "DURATION", value_parser = duration::parse, global = true)]
    told_within: Option<Duration>,

    /// The name under which others see the holder [default: host/pid]
    #[arg(long, env = "ZKLOCK_IDENTITY", value_name = "NAME", global = true)]
    identity: Option<String>,

    /// A file with USER:PASSWORD, for digest authentication (or put that into ZKLOCK_AUTH)
    #[arg(long, env = "ZKLOCK_AUTH_FILE", value_name = "FILE", global = true)]
    auth_file: Option<PathBuf>,

    /// A file with USER:PASSWORD, for SASL (or put that into ZKLOCK_SASL)
    #[arg(long, env = "ZKLOCK_SASL_FILE", value_name = "FILE", global = true)]
    sasl_file: Option<PathBuf>,

    /// Who may use the nodes that zklock creates: open, creator-all, or a list such as
    /// sasl:billing:cdrwa,world:anyone:r
    #[arg(long, env = "ZKLOCK_ACCESS", hide_env_values = true, value_name = "ACCESS", value_parser = access, global = true)]
    access: Option<Access>,

    /// Connect with TLS, and trust the authorities that the system trusts
    #[arg(long, env = "ZKLOCK_TLS", global = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) tls: bool,

    /// Connect with TLS, and trust the authorities in this PEM file
    #[arg(long, env = "ZKLOCK_CA", value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,

    /// The client's certificate, a PEM file
    #[arg(long, env = "ZKLOCK_CERT", value_name = "FILE", global = true)]
    cert: Option<PathBuf>,

    /// The certificate's key, a PEM file; ZKLOCK_PASS_PHRASE has the pass phrase of an encrypted
    /// key
    #[arg(long, env = "ZKLOCK_KEY", value_name = "FILE", global = true)]
    key: Option<PathBuf>,

    /// Whether the option names the servers, and not a variable.
    #[arg(skip)]
    names_hosts: bool,

    #[arg(skip)]
    secrets: Secrets,

    #[arg(skip)]
    pub(crate) source: Source,
}

/// The sources of the options, besides the command line and the variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The configuration file that was read.
    pub(crate) file: Option<PathBuf>,
    /// Where it was looked for in vain.
    pub(crate) missing: Vec<PathBuf>,
    /// Files that exist, and why they were not read.
    pub(crate) unreadable: Vec<String>,
}

impl Source {
    pub(crate) fn description(&self) -> String {
        if let Some(file) = &self.file {
            return format!("the file {} was read", file.display());
        }
        if !self.unreadable.is_empty() {
            return format!("no file was read: {}", self.unreadable.join("; "));
        }
        let places: Vec<_> = self.missing.iter().map(|file| file.display().to_string()).collect();
        format!("there is no file {}", places.join(" or "))
    }
}

/// Names the variable with the servers. One that is empty counts as not set.
fn hosts_variable() -> Option<&'static str> {
    let name = "ZKLOCK_HOSTS";
    std::env::var_os(name).is_none_or(|hosts| !hosts.is_empty()).then_some(name)
}

fn access(text: &str) -> Result<Access, String> {
    text.parse().map_err(|error: zklock_core::Error| error.to_string())
}

impl Connection {
    /// Notes where its values come from.
    pub(crate) fn learn_sources(&mut self, matches: &ArgMatches, source: Source, secrets: Secrets) {
        self.names_hosts = matches.value_source("hosts") == Some(ValueSource::CommandLine);
        (self.source, self.secrets) = (source, secrets);
    }

    /// Returns the servers, if the option names them.
    pub(crate) fn hosts_given(&self) -> Option<&String> {
        self.hosts.as_ref().filter(|_| self.names_hosts)
    }

    /// Returns the configuration file that an option or a variable names.
    pub(crate) fn configuration_file(matches: &ArgMatches) -> Option<&Path> {
        matches.get_one::<PathBuf>("config").map(PathBuf::as_path)
    }

    pub(crate) fn hosts(&self) -> Result<&str, Failure> {
        self.hosts.as_deref().ok_or_else(|| {
            Failure::usage(format!(
                "no servers are given: name them with --hosts, in the variable ZKLOCK_HOSTS, or in a configuration file as \
                 `hosts = HOST:PORT` ({})",
                self.source.description()
            ))
        })
    }

    /// Checks whether the library takes the options, as far as no file has to be read for that.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.named_options(self.hosts.as_deref().unwrap_or("localhost")).map(drop)
    }

    pub(crate) fn options(&self) -> Result<ClientOptions, Failure> {
        self.options_at(self.hosts()?)
    }

    /// Like [`options`](Self::options), for these hosts.
    pub(crate) fn options_at(&self, hosts: &str) -> Result<ClientOptions, Failure> {
        let mut options = self.named_options(hosts)?;
        for credentials in self.credentials()? {
            options = options.credentials(credentials);
        }
        if let Some(tls) = self.encryption()? {
            options = options.tls(tls);
        }
        Ok(options)
    }

    fn named_options(&self, hosts: &str) -> Result<ClientOptions, Failure> {
        let mut options = ClientOptions::new(hosts)?;
        if let Some(timeout) = self.session_timeout {
            options = options.session_timeout(timeout)?;
        }
        if let Some(timeout) = self.connect_timeout {
            options = options.connect_timeout(timeout);
        }
        if let Some(told_within) = self.told_within {
            let timeout = self.session_timeout.unwrap_or(ClientOptions::DEFAULT_SESSION_TIMEOUT);
            let latest = times::RAREST_OF_RUN.of(timeout);
            if told_within > latest {
                let (given, latest) = (duration::short(told_within), duration::short(latest));
                let message =
                    format!("--told-within {given}: choose {latest} at most, a fifth of the session timeout");
                return Err(Failure::usage(message));
            }
            options = options.told_within(told_within);
        }
        if let Some(identity) = &self.identity {
            options = options.identity(identity)?;
        }
        if let Some(access) = &self.access {
            options = options.access(access.clone());
        }
        Ok(options)
    }

    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        Client::connect(self.options()?).await.map_err(|error| not_connected(&error))
    }

    /// Calls something with a client, and closes the client whatever the result is.
    pub(crate) async fn with_client<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let client = self.client().await?;
        let outcome = work(&client).await;
        client.close().await?;
        outcome
    }

    fn credentials(&self) -> Result<Vec<Credentials>, Failure> {
        let mut all = Vec::new();
        if let Some(file) = &self.auth_file {
            all.push(Credentials::from_file(file)?);
        }
        if is_set(AUTH) {
            all.push(Credentials::from_env(AUTH)?);
        } else if let Some(text) = &self.secrets.auth {
            all.push(login(text, Credentials::digest)?);
        }
        if let Some(file) = &self.sasl_file {
            all.push(Credentials::sasl_from_file(file)?);
        }
        if is_set(SASL) {
            all.push(Credentials::sasl_from_env(SASL)?);
        } else if let Some(text) = &self.secrets.sasl {
            all.push(login(text, Credentials::sasl)?);
        }
        Ok(all)
    }

    fn encryption(&self) -> Result<Option<Tls>, Failure> {
        let mut tls = match &self.ca {
            Some(authorities) => Tls::from_file(authorities)?,
            None if self.tls => Tls::system()?,
            None if self.cert.is_some() || self.key.is_some() => {
                return Err(Failure::usage("--cert and --key are for TLS: give --ca or --tls as well"));
            }
            None => return Ok(None),
        };
        match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => {
                if is_set(PASS_PHRASE) {
                    tls = tls.pass_phrase(PassPhrase::from_env(PASS_PHRASE)?);
                } else if let Some(text) = &self.secrets.pass_phrase {
                    tls = tls.pass_phrase(PassPhrase::new(text)?);
                }
                tls = tls.identity_from_files(certificate, key)?;
            }
            (None, None) => {}
            (Some(_), None) => return Err(Failure::usage("--cert needs its key: give --key as well")),
            (None, Some(_)) => {
                return Err(Failure::usage("--key needs its certificate: give --cert as well"));
            }
        }
        Ok(Some(tls))
    }
}

/// Makes a failure of the library's error, and says what may help.
pub(crate) fn not_connected(error: &zklock_core::Error) -> Failure {
    let doctor = "`zklock doctor` asks each server by itself";
    let help = options_for(error).or((error.kind() == ErrorKind::Unreachable).then_some(doctor));
    let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
    Failure::new(Failure::exit_of(error), format!("{error}{help}"))
}

/// Returns the options that have to do with the reason why no session was opened.
pub(crate) fn options_for(error: &zklock_core::Error) -> Option<&'static str> {
    let text = error.to_string();
    if error.kind() == ErrorKind::Refused {
        Some("the login comes from ZKLOCK_SASL or --sasl-file, ZKLOCK_AUTH or --auth-file")
    } else if text.contains("TLS") || text.contains("certificate") {
        Some("the options for TLS are --tls, --ca, --cert and --key")
    } else {
        None
    }
}

/// Makes credentials of a text of the form USER:PASSWORD. No error quotes it.
fn login(
    text: &str,
    with: impl Fn(&str, &str) -> Result<Credentials, zklock_core::Error>,
) -> Result<Credentials, Failure> {
    let (user, password) = text.split_once(':').ok_or_else(|| Failure::usage("write it as USER:PASSWORD"))?;
    Ok(with(user, password)?)
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}
