//! Faults that strike at a chosen message: which message, what happens then, and how a test learns of it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::wire::kind::Kind;

/// A fault that waits for its message; pass it to [`Server::inject`](crate::Server::inject).
///
/// It strikes once, at the next message of its kind, unless configured otherwise. A request counts even if it is going to
/// be refused. (A zklock client creates the directory of a lock when a first create has failed.) Events are sent without a
/// request: at [`Kind::Event`] there is only the message to the client.
///
/// # Examples
///
/// The second node that any client tries to create below `/locks` is created, but its creator does not learn of it: the
/// connection is cut instead of the reply.
///
/// ```
/// use zklock_testkit::{Fault, Kind, Server};
///
/// let server = Server::start()?;
/// let injected = server.inject(Fault::cut_before_reply(Kind::Create).below("/locks").nth(2));
/// assert_eq!(injected.strikes(), 0);
/// # Ok::<(), zklock_testkit::StartError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "give it to Server::inject"]
pub struct Fault {
    kind: Kind,
    action: Action,
    below: Option<String>,
    session: Option<i64>,
    nth: u64,
    times: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    LoseRequest,
    CutBeforeReply,
    CutAfterReply,
    DropReply,
    DelayReply(Duration),
    Freeze,
    Expire,
    BringBack,
}

impl Fault {
    fn new(kind: Kind, action: Action) -> Self {
        Self { kind, action, below: None, session: None, nth: 1, times: 1 }
    }

    /// A fault by its name, such as `cut-before-reply`. One of them, `delay-reply`, needs a delay, and no other has one.
    ///
    /// # Errors
    ///
    /// If there is no such fault; the text says which there are.
    pub fn named(name: &str, kind: Kind, delay: Option<Duration>) -> Result<Self, String> {
        let make = match (name.replace('_', "-").as_str(), delay) {
            ("delay-reply", Some(delay)) => return Ok(Self::delay_reply(kind, delay)),
            ("delay-reply", None) => {
                return Err("the fault delay-reply needs a delay, in seconds".to_owned());
            }
            ("lose-request", None) => Self::lose_request,
            ("cut-before-reply", None) => Self::cut_before_reply,
            ("cut-after-reply", None) => Self::cut_after_reply,
            ("drop-reply", None) => Self::drop_reply,
            ("freeze", None) => Self::freeze,
            ("expire", None) => Self::expire,
            ("bring-back", None) => Self::bring_back,
            (_, Some(_)) => return Err(format!("the fault {name} has no delay: only delay-reply has")),
            _ => {
                return Err(format!(
                    "there is no fault that is called {name:?}: known are lose-request, cut-before-reply, cut-after-reply, \
                     drop-reply, delay-reply, freeze, expire, bring-back"
                ));
            }
        };
        Ok(make(kind))
    }

    /// The request never arrives: it is not carried out, and the connection is cut.
    pub fn lose_request(kind: Kind) -> Self {
        Self::new(kind, Action::LoseRequest)
    }

    /// The request is carried out, but the connection is cut before the reply is sent. The client cannot know whether it
    /// was.
    pub fn cut_before_reply(kind: Kind) -> Self {
        Self::new(kind, Action::CutBeforeReply)
    }

    /// The connection is cut just after the reply.
    pub fn cut_after_reply(kind: Kind) -> Self {
        Self::new(kind, Action::CutAfterReply)
    }

    /// The request is carried out, but its reply is dropped, and the connection goes on as if nothing had happened. No
    /// network does that: it would be a bug in the server. A client that sets no time limit for an answer waits until the
    /// connection ends.
    pub fn drop_reply(kind: Kind) -> Self {
        Self::new(kind, Action::DropReply)
    }

    /// The reply, and everything sent on this connection after it, is delayed by this time on the server's clock.
    pub fn delay_reply(kind: Kind, delay: Duration) -> Self {
        Self::new(kind, Action::DelayReply(delay))
    }

    /// The session is frozen just before the request is carried out, as by
    /// [`Server::freeze_session`](crate::Server::freeze_session). The [`Kind::Connect`] of a new session does not count,
    /// since there is no session yet.
    pub fn freeze(kind: Kind) -> Self {
        Self::new(kind, Action::Freeze)
    }

    /// The session ends just before the request would be carried out. The [`Kind::Connect`] of a new session does not
    /// count, since there is no session yet.
    pub fn expire(kind: Kind) -> Self {
        Self::new(kind, Action::Expire)
    }

    /// The request is carried out and answered, and watchers are notified. Then its deletions are lost: those nodes exist
    /// again, as they were, and nobody is notified. [`Kind::Delete`] and [`Kind::Multi`] delete nodes. A request that
    /// deletes nothing loses nothing, and a session that has ended gets no node back.
    ///
    /// No ensemble may do that, but some have: ZooKeeper 3.8.0 can lose what it has confirmed when another server becomes
    /// the leader (ZOOKEEPER-4643). So a lock can be blocked by a node that its own client has seen deleted, while the
    /// session lives on. [`Server::bring_back`](crate::Server::bring_back) does the same at any later time.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::{Client, ClientOptions};
    /// use zklock_testkit::{Fault, Kind, Server};
    ///
    /// let server = Server::start()?;
    /// let injected = server.inject(Fault::bring_back(Kind::Delete).below("/locks/report"));
    /// let zk = Client::connect(ClientOptions::new(&server.connect_string())).wait()?;
    /// let hold = zk.mutex("/locks/report")?.acquire().wait()?;
    /// hold.release().wait()?;
    /// assert_eq!(injected.strikes(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bring_back(kind: Kind) -> Self {
        Self::new(kind, Action::BringBack)
    }

    /// Only messages about this path, or a path below it, count. For a multi, that is the first path. Messages that are not
    /// about a single node (such as pings, and those about watches) then do not count.
    pub fn below(mut self, path: &str) -> Self {
        self.below = Some(path.trim_end_matches('/').to_owned());
        self
    }

    /// Only messages of this session count.
    pub fn of_session(mut self, session: i64) -> Self {
        self.session = Some(session);
        self
    }

    /// Strikes at the n-th message that counts from now on; 1 is the next one.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth.max(1);
        self
    }

    /// Strikes this many times, at consecutive messages that count.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn counts(&self, kind: Kind, path: Option<&str>, session: Option<i64>) -> bool {
        let is_below = |below: &String| {
            path.and_then(|path| path.strip_prefix(below.as_str()))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Faults that act on a session need one.
        let has_target = !matches!(self.action, Action::Freeze | Action::Expire) || session.is_some();
        has_target
            && self.kind == kind
            && self.below.as_ref().is_none_or(is_below)
            && self.session.is_none_or(|wanted| Some(wanted) == session)
    }
}

/// A handle to an injected fault, to wait until it has struck. Dropping the handle does not remove the fault.
#[derive(Debug, Clone)]
pub struct Injected {
    strikes: Arc<(Mutex<u64>, Condvar)>,
}

impl Injected {
    /// How often the fault has struck.
    pub fn strikes(&self) -> u64 {
        *self.strikes.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the fault has struck; `false` if it has not by `bound`.
    #[must_use = "it may not have struck"]
    pub fn wait(&self, bound: Duration) -> bool {
        let strikes = self.strikes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.strikes.1.wait_timeout_while(strikes, bound, |strikes| *strikes == 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 > 0
    }

    fn strike(&self) {
        *self.strikes.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.strikes.1.notify_all();
    }
}

/// All faults that have not struck yet.
#[derive(Debug, Default)]
pub(crate) struct Script {
    waiting: Vec<(Fault, Injected)>,
}

impl Script {
    pub(crate) fn add(&mut self, fault: Fault) -> Injected {
        let injected = Injected { strikes: Arc::default() };
        self.waiting.push((fault, injected.clone()));
        injected
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The fault that strikes at this message, if any. Every fault counts the message, and the first that is due strikes.
    pub(crate) fn strike(&mut self, kind: Kind, path: Option<&str>, session: Option<i64>) -> Option<Action> {
        let mut action = None;
        for (fault, injected) in &mut self.waiting {
            if !fault.counts(kind, path, session) {
                continue;
            }
            if fault.nth > 1 {
                fault.nth -= 1;
            } else if action.is_none() && fault.times > 0 {
                fault.times -= 1;
                action = Some(fault.action);
                injected.strike();
            }
        }
        self.waiting.retain(|(fault, _)| fault.times > 0);
        action
    }
}
