//! The task that runs one member of a double barrier, from the creation of its node to its deletion.

use super::member::{LeaveRequest, Member, lost};
use crate::attempt::driver::{Driver, SessionSource};
use crate::attempt::members::Members;
use crate::attempt::shared::Handle;
use crate::base::debt::Debt;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::sync::Mutex;
use crate::connect::level::Newer;
use crate::machine::drive::Machine;
use crate::machine::member::{self, Answer};
use crate::machine::protocol::{Operation, Outcome, Patience, Refusal};
use crate::session::session::Link;
use crate::zookeeper::ensemble::text_of;
use crate::zookeeper::node_data;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) struct Membership {
    driver: Driver<member::Member>,
    client: Handle,
    path: Arc<str>,
    debt: Arc<Debt>,
    known: Arc<Members>,
    /// The name that `known` knows it by.
    noted: Option<Arc<str>>,
}

impl Membership {
    pub(super) fn new(
        client: Handle,
        known: Arc<Members>,
        path: Arc<str>,
        members: u32,
        patience: Patience,
        debt: Arc<Debt>,
    ) -> Self {
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        let data = node_data::of(client.pool.identity());
        let machine = Box::new(member::Member::new(&path, members, data, patience));
        let source = SessionSource::Slot(client.pool.slot().clone());
        // The session does not heal what a member leaves behind, because the name does not show whose it is.
        let driver = Driver::new(machine, source, Vec::new());
        Self { driver, client, path, debt, known, noted: None }
    }

    pub(super) async fn run(mut self, mut answer: oneshot::Sender<Result<Option<Member>, Error>>) {
        let entered = tokio::select! {
            biased;
            () = answer.closed() => Ok(None),
            entered = self.enter() => entered,
        };
        match entered {
            Ok(Some(member)) => {
                let (leave_tx, request) = oneshot::channel();
                // If the caller is gone, the member is dropped here, and leaves.
                let _ = answer.send(Ok(self.member(&member, leave_tx)));
                if let Some(request) = self.request(request).await {
                    self.leave(request).await;
                }
            }
            Ok(None) => {
                self.debt.owe();
                let _ = answer.send(Ok(None));
            }
            Err(error) => {
                self.debt.owe();
                let _ = answer.send(Err(error));
            }
        }
        self.see_through().await;
    }

    fn member(&self, node: &str, leave_tx: oneshot::Sender<LeaveRequest>) -> Option<Member> {
        Some(Member {
            client: self.client.clone(),
            path: self.path.clone(),
            node: node.into(),
            session: self.driver.session()?.clone(),
            debt: self.debt.clone(),
            leave_tx: Mutex::new(Some(leave_tx)),
        })
    }

    /// Waits until the barrier is open, and returns the member's node; `None` if the barrier is not open and the
    /// member does not want to wait.
    async fn enter(&mut self) -> Result<Option<String>, Error> {
        loop {
            // A session that is over cannot be used to enter.
            if self.driver.loss().is_some() {
                self.driver.machine.handle_session_over();
            }
            match self.driver.machine.poll_verdict() {
                Some(Answer::Entered { node }) => return Ok(Some(node)),
                Some(Answer::Failed(refusal)) => return Err(self.refused(&refusal)),
                Some(_) => return Ok(None),
                None => {}
            }
            self.driver.begin().await?;
            // The last member to come would be refused, while the others wait.
            if self.driver.session().is_some_and(|session| !session.creates_in_transactions()) {
                return Err(self.refused(&Refusal::Answer(Newer::DoubleBarrier.refusal())));
            }
            self.note();
            let (known, own) = (&self.known, self.noted.as_deref());
            let hear = |_: &[Operation], outcomes: &mut [Outcome]| known.hide_departed(own, outcomes);
            self.driver.step(hear).await?;
        }
    }

    /// Tells the members of this process the name, before there is a node with it.
    fn note(&mut self) {
        let name = self.driver.machine.mark().to_string();
        if self.noted.as_deref() != Some(&name) {
            self.forget();
            let name: Arc<str> = name.into();
            self.known.note(&name, &self.debt);
            self.noted = Some(name);
        }
    }

    fn forget(&mut self) {
        if let Some(name) = self.noted.take() {
            self.known.forget(&name);
        }
    }

    /// Waits for the request to leave; `None` if the member was dropped, or has lost its session.
    async fn request(&mut self, request: oneshot::Receiver<LeaveRequest>) -> Option<LeaveRequest> {
        let mut link = self.driver.session()?.link();
        tokio::select! {
            biased;
            request = request => request.ok(),
            _ = link.wait_for(|link| matches!(link, Link::Over(_))) => None,
        }
    }

    async fn leave(&mut self, request: LeaveRequest) {
        let LeaveRequest { mut answer, patience } = request;
        self.driver.machine.handle_leave(patience);
        let left = tokio::select! {
            biased;
            () = answer.closed() => return,
            left = self.wait_for_others() => left,
        };
        if !matches!(left, Ok(true)) {
            // Our node may still exist.
            self.debt.owe();
        }
        let _ = answer.send(left);
    }

    /// Leaves, and waits for the others. Returns whether all of them have left.
    async fn wait_for_others(&mut self) -> Result<bool, Error> {
        loop {
            match self.driver.machine.poll_verdict() {
                Some(Answer::Left) => return Ok(true),
                Some(Answer::Failed(refusal)) => {
                    if let Some(session) = self.driver.session() {
                        session.gone().await;
                    }
                    return Err(self.refused(&refusal));
                }
                Some(Answer::Lost) => {
                    let reason = self.driver.loss().unwrap_or(LossReason::NodeDeleted);
                    return Err(lost(reason, &self.path));
                }
                Some(_) => return Ok(false),
                None => self.driver.step(|_, _| ()).await?,
            }
        }
    }

    /// Waits until the node is gone.
    async fn see_through(&mut self) {
        self.driver.machine.handle_end();
        self.driver.stop_watching();
        while !self.driver.machine.is_gone() && self.driver.step(|_, _| ()).await.is_ok() {}
        if let Some(session) = self.driver.session() {
            session.gone().await;
        }
    }

    fn refused(&self, refusal: &Refusal) -> Error {
        let why = text_of(refusal);
        Error::new(ErrorKind::Refused, format!("the server refused the barrier {}: {why}", self.path))
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.forget();
        // This runs even if its runtime is gone.
        self.debt.settle();
    }
}
