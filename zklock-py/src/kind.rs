//! What a lock is: its kind, its path and its options.
//!
//! A client connects when it is first needed, and a lock is made before that: so what is wrong with it is found
//! here, and the lock of the core is made when there is a client.

use crate::error::{invalid, raised};
use crate::number;
use crate::place::{Held, Place, Shared};
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use zklock_core::blocking::{Client, Lock};
use zklock_core::{Dialect, Error, Foreign, LockOptions, Owner, Watching, check_lock_path};

/// What both faces of a lock share.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) place: Arc<Place>,
    pub(crate) path: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) is_reentrant: bool,
    kind: Kind,
    options: LockOptions,
    lock: OnceLock<Lock>,
}

pub(crate) enum Kind {
    Mutex,
    Read,
    Write,
    Election,
    Exclusive,
    Semaphore { limit: u32, permits: u32, has_fixed_limit: bool },
    All(Vec<Arc<Core>>),
}

impl Core {
    pub(crate) fn new(
        py: Python<'_>,
        shared: &Arc<Shared>,
        kind: Kind,
        path: &str,
        timeout: Option<f64>,
        options: Options,
    ) -> PyResult<Arc<Self>> {
        let timeout = number::patience(py, timeout)?;
        if !matches!(kind, Kind::All(_)) {
            check_lock_path(path).map_err(|error| raised(py, &error))?;
        }
        kind.check(path).map_err(|problem| invalid(py, problem))?;
        let core = Self {
            shared: shared.clone(),
            place: shared.place(&kind.key(path), path),
            path: path.to_owned(),
            timeout,
            is_reentrant: options.is_reentrant,
            kind,
            options: options.inner,
            lock: OnceLock::new(),
        };
        // Where there is a client already, it has the last word.
        if let Some(client) = shared.connector.connected() {
            core.connect_to(&client).map_err(|error| raised(py, &error))?;
        }
        Ok(Arc::new(core))
    }

    /// The set of these locks.
    pub(crate) fn all(
        py: Python<'_>,
        shared: &Arc<Shared>,
        locks: Vec<Arc<Self>>,
        timeout: Option<f64>,
        options: Options,
    ) -> PyResult<Arc<Self>> {
        let path = locks.iter().map(|lock| lock.path.as_str()).collect::<Vec<_>>().join(", ");
        let mut single: Vec<_> = locks.iter().flat_map(Self::members).collect();
        single.sort_by(|left, right| left.path.cmp(&right.path));
        let problem = if single.is_empty() {
            "name one lock at least"
        } else if !single.iter().all(|lock| Arc::ptr_eq(&lock.shared, shared)) {
            "all of them must come from the client that makes the set"
        } else if single.windows(2).any(|two| two[0].path == two[1].path) {
            "two of them are of one path: leave one out"
        } else if single.len() > 1 && single.iter().any(|lock| matches!(lock.kind, Kind::Exclusive)) {
            "an exclusive lock has no queue: use a mutex instead"
        } else {
            return Self::new(py, shared, Kind::All(locks), &path, timeout, options);
        };
        let shown: String = path.chars().take(200).collect();
        Err(invalid(py, format!("the set of the locks {shown}: {problem}")))
    }

    /// Those of which a set is made.
    fn members(self: &Arc<Self>) -> Vec<Arc<Self>> {
        match &self.kind {
            Kind::All(locks) => locks.iter().flat_map(Self::members).collect(),
            _ => vec![self.clone()],
        }
    }

    /// The lock of the core, if the client has connected.
    pub(crate) fn connected(&self) -> Option<&Lock> {
        self.lock.get().or_else(|| self.connect_to(&self.shared.connector.connected()?).ok())
    }

    pub(crate) fn connect(&self, timeout: Option<Duration>) -> Result<&Lock, Error> {
        match self.connected() {
            Some(lock) => Ok(lock),
            None => self.connect_to(&self.shared.connector.connect(timeout)?),
        }
    }

    pub(crate) fn connect_to(&self, client: &Client) -> Result<&Lock, Error> {
        let (path, options) = (&self.path, self.options.clone());
        let lock = match &self.kind {
            Kind::Mutex => client.mutex_with(path, options),
            Kind::Read => client.read_with(path, options),
            Kind::Write => client.write_with(path, options),
            Kind::Election => client.election_with(path, options),
            Kind::Exclusive => client.exclusive_with(path, options),
            Kind::Semaphore { limit, .. } => client.semaphore_with(path, *limit, options),
            Kind::All(locks) => {
                let locks = locks.iter().map(|lock| lock.connect_to(client).cloned());
                client.all_with(&locks.collect::<Result<Vec<_>, _>>()?, options)
            }
        }?;
        Ok(self.lock.get_or_init(|| lock))
    }

    /// One more hold, where a reentrant lock is held by its owner.
    pub(crate) fn again(&self, owner: Owner) -> Result<Option<Arc<Held>>, Error> {
        if !self.is_reentrant {
            return Ok(None);
        }
        let Some(lock) = self.connected() else { return Ok(None) };
        Ok(lock.again(owner)?.map(|hold| Held::new(hold, owner, true)))
    }

    /// Whether one alone can hold it, or lead, and be observed.
    pub(crate) fn refuse_observers(&self, py: Python<'_>) -> PyResult<()> {
        match &self.kind {
            Kind::All(_) => {
                let message = format!("the set of the locks {}: observe them one by one", self.path);
                Err(invalid(py, message))
            }
            Kind::Semaphore { .. } => {
                let message = format!(
                    "the semaphore {} has no one holder to observe: list its contenders instead",
                    self.path
                );
                Err(invalid(py, message))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn describe(&self, class: &str) -> String {
        let kind = self.kind.name().map_or_else(String::new, |name| format!(" {name}"));
        let reentrant = if self.is_reentrant { " reentrant" } else { "" };
        let held = self.place.held();
        let state = match held.last() {
            Some(held) => {
                let (token, seconds) = (held.hold.token(), held.hold.valid_for().as_secs_f64());
                format!("held with token {token} for {seconds:.3} s at least")
            }
            None => "not held here".to_owned(),
        };
        format!("<zklock.{class}{kind}{reentrant} {:?} {state}>", self.path)
    }
}

impl Kind {
    /// Locks of one key are the same to who releases. The options make no difference, but how much is released does.
    fn key(&self, path: &str) -> String {
        match self {
            Self::All(locks) => {
                let mut keys: Vec<_> = locks.iter().map(|lock| lock.kind.key(&lock.path)).collect();
                keys.sort_unstable();
                format!("all({})", keys.join(","))
            }
            Self::Semaphore { permits, .. } => format!("semaphore({permits}) {path}"),
            Self::Mutex => format!("mutex {path}"),
            Self::Read => format!("read {path}"),
            Self::Write => format!("write {path}"),
            Self::Election => format!("election {path}"),
            Self::Exclusive => format!("exclusive {path}"),
        }
    }

    /// What the core would say, if it could be asked already.
    fn check(&self, path: &str) -> Result<(), String> {
        match *self {
            Self::Semaphore { permits: 0, .. } => {
                Err(format!("the semaphore {path}: no permits cannot be acquired: ask for one at least"))
            }
            Self::Semaphore { limit, permits, has_fixed_limit: true } if permits > limit => Err(format!(
                "the semaphore {path}: {permits} permits of {limit} would never be there: raise the limit, or ask for \
                 fewer"
            )),
            _ => Ok(()),
        }
    }

    /// What is said of it; of a mutex nothing.
    fn name(&self) -> Option<String> {
        match self {
            Self::Mutex => None,
            Self::Read => Some("read".to_owned()),
            Self::Write => Some("write".to_owned()),
            Self::Election => Some("election".to_owned()),
            Self::Exclusive => Some("exclusive".to_owned()),
            Self::Semaphore { limit, permits: 1, .. } => Some(format!("semaphore of {limit}")),
            Self::Semaphore { limit, permits, .. } => Some(format!("{permits} of semaphore of {limit}")),
            Self::All(_) => Some("all".to_owned()),
        }
    }
}

/// How a lock behaves.
pub(crate) struct Options {
    inner: LockOptions,
    is_reentrant: bool,
}

impl Options {
    pub(crate) fn new(is_reentrant: bool) -> Self {
        Self { inner: LockOptions::new().reentrant(is_reentrant), is_reentrant }
    }

    /// With how it stands in the queue, by the names of Python.
    pub(crate) fn queued(self, py: Python<'_>, foreign: &str, watching: &str) -> PyResult<Self> {
        let foreign =
            chosen(py, "foreign", foreign, &[("refuse", Foreign::Refuse), ("go-ahead", Foreign::GoAhead)])?;
        let watching = chosen(
            py,
            "watching",
            watching,
            &[("nearest", Watching::Nearest), ("children", Watching::Children)],
        )?;
        Ok(Self { inner: self.inner.foreign(foreign).watching(watching), ..self })
    }

    pub(crate) fn dialect(self, py: Python<'_>, name: &str, known: &[Dialect]) -> PyResult<Self> {
        let names: Vec<_> = known.iter().map(ToString::to_string).collect();
        let known: Vec<_> = names.iter().map(String::as_str).zip(known.iter().copied()).collect();
        Ok(Self { inner: self.inner.dialect(chosen(py, "dialect", name, &known)?), ..self })
    }

    pub(crate) fn permits(self, py: Python<'_>, permits: u32, limit_at: Option<&str>) -> PyResult<Self> {
        let inner = self.inner.permits(permits);
        let Some(path) = limit_at else { return Ok(Self { inner, ..self }) };
        check_lock_path(path).map_err(|error| raised(py, &error))?;
        Ok(Self { inner: inner.limit_at(path), ..self })
    }
}

/// One of few words.
fn chosen<T: Copy>(py: Python<'_>, what: &str, given: &str, known: &[(&str, T)]) -> PyResult<T> {
    known.iter().find(|(name, _)| *name == given).map(|(_, one)| *one).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
        invalid(py, format!("{what}={given:?}: it is {}", names.join(" or ")))
    })
}
