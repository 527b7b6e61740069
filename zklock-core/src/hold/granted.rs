//! What an attempt was granted: the nodes, in a session.

use crate::base::debt::Debt;
use crate::hold::token::Token;
use crate::machine::callers::Left;
use crate::session::holding::Holding;
use crate::session::session::Session;
use crate::session::slot::Slot;
use std::sync::Arc;

/// What an attempt was granted. Grants that follow one another on one node share it.
#[derive(Clone)]
pub(crate) struct Granted {
    pub(crate) session: Arc<Session>,
    pub(crate) holding: Arc<Holding>,
    pub(crate) path: Arc<str>,
    pub(crate) token: Token,
    /// What is owed for the nodes once nobody wants them.
    pub(crate) debt: Arc<Debt>,
    /// Finds the client's next session once this one is over.
    pub(crate) slot: Arc<Slot>,
}

impl Granted {
    /// Begins the release: the task of the attempt then deletes the nodes.
    pub(crate) fn give_up(&self) -> Left {
        self.debt.owe();
        if self.session.release(&self.holding) { Left::Released } else { Left::Lost }
    }
}
