//! The server to which the session of the holds is connected: it may lag behind the quorum.

use super::machine::keeper::{Check, Seen};
use std::collections::VecDeque;

/// A request on its way to the server, which executes requests in this order.
#[derive(Clone, Hash, Debug)]
pub(crate) enum Request {
    /// A check of these holds, by the quorum.
    Check(Vec<usize>),
    /// A watch for each of these holds, on the server itself.
    Watch(Vec<usize>),
}

/// A message on its way from the server. Messages arrive in this order.
#[derive(Clone, Hash, Debug)]
pub(crate) enum Message {
    Checked(Check),
    Seen(Vec<(usize, Seen)>),
    /// The node of this hold, which was watched, is gone.
    Gone(usize),
}

#[derive(Clone, Default, Hash, Debug)]
pub(crate) struct Follower {
    pub(crate) requests: VecDeque<Request>,
    pub(crate) messages: VecDeque<Message>,
    /// The holds whose nodes are watched.
    watched: Vec<usize>,
    /// The holds whose nodes are deleted, as far as it knows.
    gone: Vec<usize>,
    /// Whether it learns of changes by the quorum late.
    pub(crate) lags: bool,
}

impl Follower {
    /// It learns that these nodes are deleted.
    pub(crate) fn learn(&mut self, deleted: impl Iterator<Item = usize>) {
        self.lags = false;
        for hold in deleted.filter(|hold| !self.gone.contains(hold)).collect::<Vec<_>>() {
            self.gone.push(hold);
            if self.watched.contains(&hold) {
                self.watched.retain(|watched| *watched != hold);
                self.messages.push_back(Message::Gone(hold));
            }
        }
    }

    /// Sets watches, and reports the nodes that it knows to be deleted.
    pub(crate) fn watch(&mut self, holds: &[usize]) {
        let (gone, watched) = (&self.gone, &mut self.watched);
        let look = |hold: &usize| {
            let is_gone = gone.contains(hold);
            if !is_gone {
                watched.push(*hold);
            }
            (*hold, if is_gone { Seen::Gone } else { Seen::There })
        };
        self.messages.push_back(Message::Seen(holds.iter().map(look).collect()));
    }

    /// Drops the first check on its way, or its answer.
    pub(crate) fn forget_check(&mut self) {
        if let Some(answer) = self.messages.iter().position(|message| matches!(message, Message::Checked(_)))
        {
            self.messages.remove(answer);
        } else if let Some(check) =
            self.requests.iter().position(|request| matches!(request, Request::Check(_)))
        {
            self.requests.remove(check);
        }
    }

    pub(crate) fn has_answered_check(&self) -> bool {
        self.messages.iter().any(|message| matches!(message, Message::Checked(_)))
    }

    /// The connection ends, and everything on its way is lost. The next server may be another one.
    pub(crate) fn disconnect(&mut self) {
        self.requests.clear();
        self.messages.clear();
        self.watched.clear();
    }
}
