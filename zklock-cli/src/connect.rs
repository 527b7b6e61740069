//! How the ensemble is reached: options that all commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args};
use zklock::face::{Named, Value, times};
use zklock::{Client, ClientOptions, ErrorKind};

use crate::duration;
use crate::failure::Failure;

/// What the command cannot do without, was not built with, or has variables for.
const LEFT_OUT: [&str; 5] = ["heartbeat", "kerberos", "auth-env", "sasl-env", "pass-phrase-env"];

const HEADING: &str = "Connection";

/// How to reach the ensemble.
#[derive(Args, Clone)]
#[command(next_help_heading = HEADING)]
pub(crate) struct Connection {
    /// A file with options of the connection [default: ~/.config/zklock.conf, else /etc/zklock.conf]
    #[arg(long, env = "ZKLOCK_CONFIG", value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) config: Option<PathBuf>,

    /// The servers, host:port,host:port.
    ///
    /// A /chroot may follow
    #[arg(long, short = 'H', env = is_usable("ZKLOCK_HOSTS").then_some("ZKLOCK_HOSTS"), global = true)]
    pub(crate) hosts: Option<String>,

    /// The options of the library that are given, with their values. There are passwords among them.
    #[arg(skip)]
    given: Vec<(String, String)>,

    /// Whether the option names the servers, and not a variable.
    #[arg(skip)]
    names_hosts: bool,

    #[arg(skip)]
    pub(crate) source: Source,
}

/// Returns the options of the library that the command has.
pub(crate) fn options() -> impl Iterator<Item = &'static Named<ClientOptions>> {
    ClientOptions::NAMED.iter().filter(|option| !LEFT_OUT.contains(&option.name))
}

fn is_secret(option: &Named<ClientOptions>) -> bool {
    matches!(option.value, Value::Secret(_))
}

/// Returns an argument for each of them. Passwords are not on the command line, where others see them.
pub(crate) fn arguments() -> impl Iterator<Item = Arg> {
    options().filter(|option| !is_secret(option)).map(argument)
}

/// Returns the value of an option, or where it is.
fn given(option: &Named<ClientOptions>, matches: &ArgMatches) -> Option<(String, String)> {
    if is_secret(option) {
        let variable = variable(option.name);
        let is_set = std::env::var_os(&variable).is_some_and(|value| !value.is_empty());
        return is_set.then(|| (format!("{}-env", option.name), variable));
    }
    Some((option.name.to_owned(), matches.get_one::<String>(option.name)?.clone()))
}

fn argument(option: &'static Named<ClientOptions>) -> Arg {
    let default = Some(option.default).filter(|default| !default.is_empty());
    let default = default.map(|default| format!(" [default: {default}]")).unwrap_or_default();
    let mut argument = Arg::new(option.name)
        .long(option.name)
        .value_name(option.value.word())
        .value_parser(|text: &str| match check(option, text) {
            Ok(()) => Ok(text.to_owned()),
            // The error around it names the option.
            Err(error) => Err(error.to_string().replacen(&format!("{}: ", option.name), "", 1)),
        })
        .help(format!("{}{default}", option.about))
        // A list may have hashes of passwords.
        .hide_env_values(option.name == "access")
        .help_heading(HEADING)
        .hide_short_help(true)
        .global(true);
    if option.value == Value::YesNo {
        argument = argument.num_args(0..=1).require_equals(true).default_missing_value("yes");
    }
    let variable = variable(option.name);
    if is_usable(&variable) { argument.env(variable) } else { argument }
}

/// Checks a value, as far as no file has to be read for that.
pub(crate) fn check(option: &Named<ClientOptions>, text: &str) -> Result<(), zklock::Error> {
    if option.value == Value::File {
        return Ok(());
    }
    ClientOptions::new("localhost").set(option.name, text).map(drop)
}

/// Returns the variable of an option: ZKLOCK_SESSION_TIMEOUT of session-timeout.
fn variable(option: &str) -> String {
    format!("ZKLOCK_{}", option.to_uppercase().replace('-', "_"))
}

/// A variable that is empty counts as not set.
fn is_usable(variable: &str) -> bool {
    std::env::var_os(variable).is_none_or(|value| !value.is_empty())
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

impl Connection {
    /// Adds what only the file has, and notes where the values come from.
    pub(crate) fn complete(&mut self, matches: &ArgMatches, source: Source, of_file: Vec<(String, String)>) {
        self.names_hosts = matches.value_source("hosts") == Some(ValueSource::CommandLine);
        self.source = source;
        self.given = options().filter_map(|option| given(option, matches)).collect();
        for (name, value) in of_file {
            if name == "hosts" {
                self.hosts.get_or_insert(value);
            } else if self.get(&format!("{name}-env")).is_none() {
                self.set_default(&name, &value);
            }
        }
    }

    /// Sets an option, unless it was given.
    pub(crate) fn set_default(&mut self, option: &str, value: &str) {
        if self.get(option).is_none() {
            self.given.push((option.to_owned(), value.to_owned()));
        }
    }

    fn get(&self, option: &str) -> Option<&str> {
        self.given.iter().find(|(name, _)| name == option).map(|(_, value)| &**value)
    }

    /// Returns the value of an option that is a time, if it was given.
    pub(crate) fn time(&self, option: &str) -> Option<Duration> {
        duration::parse(self.get(option)?).ok()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.options().is_ok_and(|options| options.is_encrypted())
    }

    /// Returns the servers, if the option names them.
    pub(crate) fn hosts_given(&self) -> Option<&String> {
        self.hosts.as_ref().filter(|_| self.names_hosts)
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

    pub(crate) fn options(&self) -> Result<ClientOptions, Failure> {
        self.options_at(self.hosts()?)
    }

    /// Like [`options`](Self::options), for one of the servers.
    pub(crate) fn options_of(&self, server: &str) -> Result<ClientOptions, Failure> {
        let chroot = self.hosts()?.split_once('/').map(|(_, chroot)| format!("/{chroot}"));
        self.options_at(&format!("{server}{}", chroot.unwrap_or_default()))
    }

    fn options_at(&self, hosts: &str) -> Result<ClientOptions, Failure> {
        let timeout = self.time("session-timeout").unwrap_or(ClientOptions::DEFAULT_SESSION_TIMEOUT);
        let latest = times::RAREST_OF_RUN.of(timeout);
        if let Some(loss_timeout) = self.time("loss-timeout").filter(|loss_timeout| *loss_timeout > latest) {
            let (given, latest) = (duration::short(loss_timeout), duration::short(latest));
            let message =
                format!("--loss-timeout {given}: choose {latest} at most, a fifth of the session timeout");
            return Err(Failure::usage(message));
        }
        let set = |options: ClientOptions, (name, value): &(String, String)| options.set(name, value);
        Ok(self.given.iter().try_fold(ClientOptions::new(hosts), set)?.checked()?)
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
}

/// Makes a failure of the library's error, and says what may help.
pub(crate) fn not_connected(error: &zklock::Error) -> Failure {
    let help = match options_for(error) {
        [] if error.kind() != ErrorKind::Unreachable => String::new(),
        [] => " (`zklock doctor` asks each server by itself)".to_owned(),
        names => format!(" (see {})", called(names, false)),
    };
    Failure::new(Failure::exit_of(error), format!("{error}{help}"))
}

/// Returns the options that have to do with the reason why no session was opened.
pub(crate) fn options_for(error: &zklock::Error) -> &'static [&'static str] {
    let text = error.to_string();
    if error.kind() == ErrorKind::Refused {
        &["auth", "auth-file", "sasl", "sasl-file"]
    } else if text.contains("TLS") || text.contains("certificate") {
        &["tls", "ca", "cert", "key"]
    } else {
        &[]
    }
}

/// Returns what these options of the library are called here, and also the first sentence of what their table says of each.
pub(crate) fn called(names: &[&str], explains: bool) -> String {
    let called = options().filter(|option| names.contains(&option.name)).map(|option| {
        let name = if is_secret(option) { variable(option.name) } else { format!("--{}", option.name) };
        let sentence = option.about.split(". ").next().filter(|_| explains);
        name + &sentence.map(|sentence| format!(" ({sentence})")).unwrap_or_default()
    });
    called.collect::<Vec<_>>().join(", ")
}
