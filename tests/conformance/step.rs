//! The steps of a conversation. They name connections by slots, and sessions by the slots that opened them.

use std::fmt;

use crate::request::Request;

/// The session that a connection asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    New,
    /// The session of that slot, which may be the same one.
    Of(usize),
    /// A session that never existed.
    Unheard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Password {
    Right,
    Wrong,
    Short,
    Null,
}

/// The last transaction that a client says it has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Nothing,
    Last,
    Future,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Connect {
    pub(crate) slot: usize,
    pub(crate) wanted: Wanted,
    pub(crate) password: Password,
    pub(crate) seen: Seen,
    pub(crate) timeout: i32,
    /// Old clients do not send it.
    pub(crate) read_only: Option<bool>,
    /// How many bytes of the request are sent, if not all.
    pub(crate) cut: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Connect(Connect),
    /// Requests in one flight.
    Send {
        slot: usize,
        requests: Vec<Request>,
    },
    HangUp {
        slot: usize,
    },
    /// Waits until this number of events have come. Only this connection keeps its session alive.
    Await {
        slot: usize,
        events: usize,
    },
    Word(&'static str),
}

impl Connect {
    /// As a client usually connects.
    pub(crate) fn usual(slot: usize, wanted: Wanted) -> Self {
        let (password, seen, read_only) = (Password::Right, Seen::Nothing, Some(false));
        Self { slot, wanted, password, seen, timeout: 30_000, read_only, cut: None }
    }
}

impl Step {
    /// Whether it may end a session and its nodes, in an order that means nothing.
    pub(crate) fn ends_session(&self) -> bool {
        match self {
            Self::Send { requests, .. } => requests.contains(&Request::Close),
            Self::Await { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(connect) => write!(out, "[{}] {connect:?}", connect.slot),
            Self::Send { slot, requests } => {
                write!(out, "[{slot}]")?;
                let mut separator = " ";
                for request in requests {
                    write!(out, "{separator}{request:?}")?;
                    separator = "\n          and ";
                }
                Ok(())
            }
            Self::HangUp { slot } => write!(out, "[{slot}] hang up"),
            Self::Await { slot, events } => write!(out, "[{slot}] wait for {events} events"),
            Self::Word(word) => write!(out, "{word}"),
        }
    }
}
