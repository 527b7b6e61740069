//! Faults that strike at a chosen message: which message, what happens then, and how a test learns of it.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::message::{Kind, Message, Side};
use super::shared::Shared;

/// A direction through the proxy, as seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
    /// Both ways.
    Both,
}

impl Direction {
    pub(super) fn covers(self, side: Side) -> bool {
        match self {
            Self::ToServer => side == Side::Request,
            Self::ToClient => side == Side::Reply,
            Self::Both => true,
        }
    }
}

/// Changes the bytes of a message, including its header, but not its length.
pub type Rewriter = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// The action at the chosen message.
pub enum Action {
    /// Nothing: the hook only reports that the message has passed.
    Pass,
    /// The server executes the request, its reply is dropped, and the client's connection is reset. On a trigger for a
    /// request, the hook fires when its reply is dropped.
    DropReplyAndReset,
    /// The message is dropped, and the client's connection is reset. A request never reaches the server.
    DropAndReset,
    /// The message is dropped, and the connection goes on as if nothing had happened.
    Swallow,
    /// [`Proxy::freeze`](super::Proxy::freeze) just before the message: frozen in its direction, it is held as well.
    Freeze(Direction),
    /// The message, and everything after it in its direction, is held until the gate is opened.
    Pause(Gate),
    /// The message is changed on its way.
    Rewrite(Rewriter),
}

impl fmt::Debug for Action {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Action").finish_non_exhaustive()
    }
}

/// A message to wait for, and the action when it comes.
#[derive(Debug)]
#[must_use = "give it to Proxy::on"]
pub struct Trigger {
    /// The kind of the request, or of the request that the reply answers.
    pub kind: Kind,
    /// The request itself, or its reply.
    pub side: Side,
    /// Which of the matching messages, from now on: 1 is the next.
    pub nth: usize,
    /// A part of the path, of the request or of the one that the reply answers.
    pub path: Option<String>,
    /// The action when it comes.
    pub action: Action,
}

impl Trigger {
    /// The next request of a kind.
    pub fn request(kind: Kind) -> Self {
        Self { kind, side: Side::Request, nth: 1, path: None, action: Action::Pass }
    }

    /// The next reply to a request of a kind; watch events are replies of [`Kind::Event`].
    pub fn reply(kind: Kind) -> Self {
        Self { side: Side::Reply, ..Self::request(kind) }
    }

    /// Not the next, but the `nth` (1 is the next).
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth;
        self
    }

    /// Only messages whose path contains `part`.
    pub fn path(mut self, part: impl Into<String>) -> Self {
        self.path = Some(part.into());
        self
    }

    /// Sets the action when it comes.
    pub fn then(mut self, action: Action) -> Self {
        self.action = action;
        self
    }

    pub(super) fn matches(&self, message: &Message) -> bool {
        // Pings and words come by themselves; counting them would make "the third message" a matter of chance.
        let is_counted = ![Kind::Ping, Kind::Word].contains(&message.kind);
        let kind = self.kind == message.kind || self.kind == Kind::Any && is_counted;
        let path = self.path.as_ref().is_none_or(|part| message.path.contains(part));
        kind && path && self.side == message.side
    }
}

/// The gate at which a [`Action::Pause`]d message waits. Clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Mutex<GateState>>);

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    waiting: Vec<Weak<Shared>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        let waiting = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.open = true;
            std::mem::take(&mut state.waiting)
        };
        for proxy in waiting.iter().filter_map(Weak::upgrade) {
            proxy.change(|_| ());
        }
    }

    /// Whether it has been opened.
    pub fn is_open(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).open
    }

    pub(super) fn wakes(&self, proxy: &Weak<Shared>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.push(Weak::clone(proxy));
    }
}

/// Reports whether a [`Trigger`]'s message has come. It fires once. Dropping it does not remove the trigger.
#[derive(Debug, Clone)]
pub struct Hook {
    pub(super) id: u64,
    pub(super) outcome: Outcome,
    pub(super) proxy: Weak<Shared>,
}

impl Hook {
    /// Waits until the message has come and its action is done; `false` if `timeout` comes first. It blocks: in a task,
    /// call it through `spawn_blocking`.
    #[must_use = "a fault that did not happen tests nothing"]
    pub fn wait(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        let (slot, fired) = &*self.outcome;
        let mut has_come = slot.lock().unwrap_or_else(PoisonError::into_inner);
        while !*has_come {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            has_come = fired.wait_timeout(has_come, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(has_come);
        self.settle();
        true
    }

    /// Whether the message has come.
    pub fn fired(&self) -> bool {
        self.settle();
        *self.outcome.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the proxy has finished its current work. A client may notice an action a moment before or after the
    /// hook reports it; after this call, both have happened.
    fn settle(&self) {
        if let Some(proxy) = self.proxy.upgrade() {
            proxy.change(|_| ());
        }
    }

    /// Removes the trigger, if it has not fired.
    pub fn cancel(&self) {
        if let Some(proxy) = self.proxy.upgrade() {
            proxy.change(|state| state.rules.disarm(self.id));
        }
    }
}

/// Whether the message has come.
pub(super) type Outcome = Arc<(Mutex<bool>, Condvar)>;

/// A trigger on its proxy.
#[derive(Debug)]
pub(super) struct Armed {
    pub(super) id: u64,
    pub(super) trigger: Trigger,
    pub(super) outcome: Outcome,
}

pub(super) fn fire(outcome: &Outcome) {
    *outcome.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    outcome.1.notify_all();
}
