//! How a client connects, a lock behaves, or a job runs.

use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use zklock::face::{hosts_from_env, unknown};
use zklock::{ClientOptions, JobSpec, LockSpec};

noun! {
    /// How a client connects, a lock behaves, or a job runs. The defaults suit most programs.
    pub struct zklock_options: Options, 1;

    /// Frees options. Clients, locks and jobs that were made with them are not affected.
    ///
    /// @param options may be NULL. A handle that was already freed is ignored.
    pub fn zklock_options_free(options: *mut zklock_options);

    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
}

pub(crate) struct Options(Mutex<Chosen>);

/// What is chosen for a client, a lock and a job that nobody makes.
#[derive(Clone)]
struct Chosen {
    client: ClientOptions,
    lock: LockSpec,
    job: JobSpec,
    /// The options that were set, with what they are of.
    set: Vec<(&'static str, String)>,
}

impl Chosen {
    fn defaults() -> Result<Self, Failure> {
        let job = JobSpec::new("/any", JobSpec::EVERY_AT_MOST)?;
        Ok(Self {
            client: ClientOptions::new("localhost"),
            lock: LockSpec::mutex("/any")?,
            job,
            set: Vec::new(),
        })
    }

    fn set(mut self, option: &str, value: &str) -> Result<Self, Failure> {
        let of_client = || ClientOptions::NAMED.iter().map(|named| named.name);
        let of_lock = || LockSpec::NAMED.iter().map(|named| named.name);
        let of_job = || JobSpec::NAMED.iter().map(|named| named.name);
        let kind = if of_client().any(|name| name == option) {
            self.client = self.client.set(option, value)?;
            "client"
        } else if of_lock().any(|name| name == option) {
            self.lock = self.lock.set(option, value)?;
            "lock"
        } else if of_job().any(|name| name == option) {
            self.job = self.job.set(option, value)?;
            "job"
        } else {
            return Err(unknown(option, of_client().chain(of_lock()).chain(of_job())).into());
        };
        self.set.push((kind, option.to_owned()));
        Ok(self)
    }
}

impl Options {
    /// Returns what was chosen for a client, a lock or a job. `None` means the defaults.
    fn of(options: *const zklock_options, kind: &str) -> Result<Option<Chosen>, Failure> {
        if options.is_null() {
            return Ok(None);
        }
        let chosen = Self::table().find(options)?.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match chosen.set.iter().find(|(of, _)| *of != kind) {
            None => Ok(Some(chosen)),
            Some((of, option)) => {
                Err(Failure::argument(format!("{option} is an option of a {of}, and this makes a {kind}")))
            }
        }
    }

    /// Returns the options for a client. No hosts mean those of the environment.
    pub(crate) fn of_client(
        options: *const zklock_options,
        hosts: Option<&str>,
    ) -> Result<ClientOptions, Failure> {
        let hosts = &hosts.map_or_else(hosts_from_env, |hosts| Ok(hosts.to_owned()))?;
        match Self::of(options, "client")? {
            Some(chosen) => Ok(chosen.client.hosts(hosts).checked()?),
            None => Ok(ClientOptions::new(hosts).checked()?),
        }
    }

    /// Applies options to a lock.
    pub(crate) fn of_lock(options: *const zklock_options, spec: LockSpec) -> Result<LockSpec, Failure> {
        Ok(match Self::of(options, "lock")? {
            Some(chosen) => spec.with_options_of(&chosen.lock),
            None => spec,
        })
    }

    /// Applies options to a job.
    pub(crate) fn of_job(options: *const zklock_options, spec: JobSpec) -> Result<JobSpec, Failure> {
        Ok(match Self::of(options, "job")? {
            Some(chosen) => spec.with_options_of(&chosen.job)?,
            None => spec,
        })
    }
}

export! {
    /// Creates options with the defaults. Free them with zklock_options_free, at any time after they were
    /// used.
    ///
    /// @param[out] options the options.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_new(options: *mut *mut zklock_options) -> zklock_status {
        let options = out("options", options)?;
        options.set(Options::table().put(Options(Mutex::new(Chosen::defaults()?))));
    }

    /// Sets an option of a client, of a lock or of a job. A constructor refuses an option that its object
    /// does not have.
    ///
    /// The options of a client, which the configuration file of the command zklock has too:
    ///
    /// @CLIENT_OPTIONS@
    ///
    /// The options of a lock:
    ///
    /// @LOCK_OPTIONS@
    ///
    /// The options of a job:
    ///
    /// @JOB_OPTIONS@
    ///
    /// A DURATION has a unit, as in "250ms", "10s" or "1h30m". Without one it is in seconds. Whether
    /// options go together, and what is in the files of TLS, is checked when the client is made. No
    /// password appears in an error message or in the log.
    ///
    /// Contenders of every naming scheme are recognised, whichever one the lock itself uses. Grants on one
    /// node, because of linger or max-local-handoffs, have the same token, so the resource that the lock guards
    /// must accept a token equal to the largest that it has seen.
    ///
    /// docs/securing.md says more about logging in, TLS and access lists, docs/performance.md about
    /// loss-timeout, linger and max-local-handoffs, docs/interop.md about naming and foreign, and
    /// docs/monitoring.md about metrics-name.
    ///
    ///     if (zklock_options_new(&options) != ZKLOCK_OK ||
    ///         zklock_options_set(options, "session-timeout", "20s") != ZKLOCK_OK ||
    ///         zklock_options_set(options, "auth", "billing:secret") != ZKLOCK_OK)
    ///         return fail(zklock_last_error());
    ///
    /// @param options the options.
    /// @param option the name of the option.
    /// @param value its value.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such option, or it cannot have this
    ///         value: zklock_last_error() names what is possible; ZKLOCK_REFUSED if this library was built
    ///         without TLS or Kerberos, and the option is about that.
    pub fn zklock_options_set(
        options: *mut zklock_options,
        option: *const c_char,
        value: *const c_char,
    ) -> zklock_status {
        let options = Options::table().find(options)?;
        let mut chosen = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen = chosen.clone().set(text("option", option)?, text("value", value)?)?;
    }
}
