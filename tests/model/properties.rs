//! The properties to check: the promises of a lock, as far as the machine keeps them.

use super::client::{Caller, Client};
use super::ensemble::{Child, Tree};
use super::explorer::Violation;
use super::machine::Moment;
use super::machine::protocol::Patience;
use super::setup::TIMEOUT;
use super::subject::{Sort, Want};
use super::watch::Target;
use super::world::Scene;

/// The lock that a client was granted.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) nodes: Vec<String>,
    pub(crate) czxid: i64,
    pub(crate) proven: Moment,
}

impl Scene {
    /// Checks the properties that hold at the moment of a grant.
    pub(crate) fn judge_grant(&mut self, number: usize, grant: &Grant) {
        let now = self.now();
        let session = self.lines[self.line_of(number)].session.as_ref();
        if session.is_none_or(|session| session.lease_until() <= now) {
            self.violate("live lease", format!("{:?} is granted without a live lease", grant.nodes));
        }
        if let Err(detail) = self.is_whole(number, grant) {
            self.violate("all or none", detail);
        }
        let mut are_there = true;
        for node in &grant.nodes {
            are_there &= self.own_child(number, node).is_some();
            if let Err(detail) = self.judge_node(number, node, grant.proven) {
                self.violate("own node", detail);
            }
        }
        if are_there {
            if let Err(detail) = self.is_fair(number) {
                self.violate("fair", detail);
            }
            self.judge_token(number, grant.czxid);
        } else {
            // The first heartbeat tells the holder.
            for (path, at) in &mut self.clients[number].removed {
                if grant.nodes.contains(path) {
                    *at = now;
                }
            }
        }
    }

    /// Checks that the grant has everything that was wanted.
    fn is_whole(&self, number: usize, grant: &Grant) -> Result<(), String> {
        let wants = &self.setup.plans[number].wants;
        let mut total = 0;
        for (directory, count) in wants.iter().map(Want::hold) {
            let is_in = |node: &&String| node.rsplit_once('/').is_some_and(|split| split.0 == directory);
            let found = grant.nodes.iter().filter(is_in).count();
            total += found;
            if found != count as usize {
                return Err(format!("{:?} has {found} of {count} in {directory}", grant.nodes));
            }
        }
        if total == grant.nodes.len() { Ok(()) } else { Err(format!("{:?} has too many", grant.nodes)) }
    }

    /// Checks that a node of a grant exists, or that an operator deleted it so late that its holder learns of that in time.
    fn judge_node(&self, number: usize, path: &String, proven: Moment) -> Result<(), String> {
        let now = self.now();
        let client = &self.clients[number];
        let proof = client.proofs.iter().find(|(other, _)| other == path).map(|(_, sent)| *sent);
        let Some(proof) = proof.filter(|sent| proven <= *sent) else {
            return Err(format!("{path} was not proven at {proven:?}"));
        };
        if self.own_child(number, path).is_some() {
            return Ok(());
        }
        let removed = client.removed.iter().find(|(other, _)| other == path).map(|(_, at)| *at);
        // A proof may have been long on its way, but must not have been kept.
        let was_in_time =
            |at: Moment| at >= proof && (now.since(proof) <= TIMEOUT / 10 || client.is_proof_latest);
        match removed {
            Some(at) if was_in_time(at) => Ok(()),
            Some(at) => Err(format!("{path} is granted and was deleted at {at:?}")),
            None => Err(format!("{path} is granted and is not there")),
        }
    }

    pub(crate) fn own_child(&self, number: usize, path: &str) -> Option<&Child> {
        let attempt = self.clients[number].attempt;
        let is_own = |child: &&Child| child.owner.client == number && child.owner.attempt == attempt;
        self.ensemble.head().find(path).filter(is_own)
    }

    /// The want of a client in this queue.
    pub(crate) fn want(&self, number: usize, queue: &str) -> Option<&Want> {
        self.setup.plans[number].wants.iter().find(|want| want.queue == queue)
    }

    /// The nodes ahead of this client's in a queue that exclude it. The nodes of the writer within whose hold it reads do not
    /// count, nor do those of contenders that have their permits.
    pub(crate) fn before(&self, number: usize, queue: &str) -> impl Iterator<Item = &Child> {
        let children = || self.ensemble.head().children_of(queue);
        let attempt = self.clients[number].attempt;
        let own = children().filter(|child| child.owner.client == number && child.owner.attempt == attempt);
        let place = own.map(|child| child.place).min();
        let want = self.want(number, queue);
        let excludes = move |child: &Child| match (want, self.want(child.owner.client, queue)) {
            (Some(want), Some(other)) => want.excludes(other) && !self.has_permits(child.owner.client, other),
            _ => false,
        };
        children().filter(move |child| place.is_some_and(|place| child.place < place) && excludes(child))
    }

    fn has_permits(&self, number: usize, want: &Want) -> bool {
        let has_them = matches!(self.clients[number].caller, Caller::Holds(_));
        has_them && matches!(want.sort, Sort::Semaphore { .. })
    }

    /// Checks that nobody is granted before a contender that came first.
    fn is_fair(&self, number: usize) -> Result<(), String> {
        let plan = &self.setup.plans[number];
        let has_order = |want: &&Want| !matches!(want.sort, Sort::Single | Sort::Lone);
        match plan.wants.iter().filter(has_order).find_map(|want| self.before(number, want.queue).next()) {
            Some(first) => Err(format!("client {number} is granted before {}", first.name)),
            None => Ok(()),
        }
    }

    /// Checks that tokens grow in every queue, also from reader to writer and back. A reader within its own write hold is
    /// between that hold and the next.
    fn judge_token(&mut self, number: usize, czxid: i64) {
        let setup = self.setup.clone();
        let plan = &setup.plans[number];
        if plan.within.is_some() || plan.wants.iter().any(|want| self.is_outside(number, want.queue)) {
            return;
        }
        for want in &plan.wants {
            let directories = &self.ensemble.head().directories;
            let Some(index) = directories.iter().position(|it| it.path == want.queue) else { continue };
            let (any, alone) = self.tokens[index];
            let is_shared = want.sort == Sort::Read;
            let before = if is_shared { alone } else { any };
            if czxid <= before {
                self.violate("fenced", format!("token {czxid} after {before}"));
            }
            self.tokens[index] = (any.max(czxid), if is_shared { alone } else { alone.max(czxid) });
        }
    }

    /// A watch of a client has just fired. If a writer released, every reader that is woken must be able to go on.
    pub(crate) fn judge_wake(&mut self, number: usize, target: &Target) {
        let Target::Node(path) = target else { return };
        let Some(queue) = path.rsplit_once('/').map(|split| split.0) else { return };
        let reads = self.want(number, queue).is_some_and(|want| want.sort == Sort::Read);
        let is_gone = self.ensemble.head().find(path).is_none();
        if reads && is_gone && self.released.as_ref() == Some(path) {
            let first = self.before(number, queue).next().map(|child| child.name.clone());
            if let Some(first) = first {
                let detail = format!("client {number} is woken by {path}, and waits for {first}");
                self.violate("no herd", detail);
            }
        }
    }

    /// Checks that at most two clients watch a node: the next, and the one behind it, which gets ready. An exception is a writer
    /// whose end lets several readers go on. Only the head of the queue watches the permits. A client that does not know yet
    /// that its own node is gone may still watch.
    fn check_herd(&self) -> Result<(), Violation> {
        let waits = |number: &usize| {
            let client = &self.clients[*number];
            let is_live = self.lines[self.line_of(*number)].is_live();
            client.caller == Caller::Wants && client.removed.is_empty() && is_live
        };
        let waiting: Vec<usize> = (0..self.clients.len()).filter(waits).collect();
        for (index, &one) in waiting.iter().enumerate() {
            for &other in &waiting[index + 1..] {
                let targets = || self.clients[one].watches.iter().map(|watch| &watch.on);
                let is_shared =
                    |target: &&Target| self.clients[other].watches.iter().any(|watch| watch.on == **target);
                let may_share = |target: &&Target| self.may_share(one, other, &waiting, target);
                if let Some(target) = targets().find(|target| is_shared(target) && !may_share(target)) {
                    let detail = format!("clients {one} and {other} watch {target:?}");
                    return Err(Violation { property: "no herd", detail });
                }
            }
        }
        Ok(())
    }

    fn may_share(&self, one: usize, other: usize, waiting: &[usize], target: &Target) -> bool {
        let wants = |number: usize| &self.setup.plans[number].wants;
        match target {
            Target::Node(path) => {
                let queue = path.rsplit_once('/').map_or("", |split| split.0);
                let reads = |number| self.want(number, queue).is_some_and(|want| want.sort == Sort::Read);
                let watches = |&&third: &&usize| {
                    !reads(third) && self.clients[third].watches.iter().any(|watch| watch.on == *target)
                };
                reads(one) || reads(other) || waiting.iter().filter(watches).count() <= 2
            }
            // Clients that wait for the end of a directory have no node in it.
            Target::Children(path) if self.is_outside(one, path) && self.is_outside(other, path) => true,
            Target::Children(path) => {
                let may = |want: &Want| matches!(want.sort, Sort::Single | Sort::Lone);
                wants(one).iter().chain(wants(other)).all(|want| want.queue != path || may(want))
            }
            Target::Limit => true,
        }
    }

    fn is_outside(&self, number: usize, path: &str) -> bool {
        self.ensemble.head().children_of(path).all(|child| child.owner.client != number)
    }

    /// The times at which an operator deleted nodes that this client holds or keeps.
    pub(crate) fn lost_nodes(&self, number: usize) -> impl Iterator<Item = Moment> {
        let client = &self.clients[number];
        let is_held = |path: &String| client.kept().is_some_and(|nodes| nodes.contains(path));
        let lost =
            move |(path, _): &&(String, Moment)| is_held(path) && self.own_child(number, path).is_none();
        client.removed.iter().filter(lost).map(|(_, at)| *at)
    }

    /// Whether this client's caller relies on its hold, and may. A holder whose node an operator deleted does not count: it
    /// learns of that within a heartbeat.
    fn holds(&self, number: usize) -> bool {
        let now = self.now();
        let session = self.lines[self.line_of(number)].session.as_ref();
        matches!(self.clients[number].caller, Caller::Holds(_))
            && session.is_some_and(|session| session.lease_until() > now)
            && !self.lost_nodes(number).any(|at| now.since(at) <= TIMEOUT / 10)
    }

    /// Checks that no two holds exclude each other, and that holds have no more permits than there are.
    fn check_holders(&self) -> Result<(), Violation> {
        let holders: Vec<usize> = (0..self.clients.len()).filter(|number| self.holds(*number)).collect();
        let wants = |number: usize| &self.setup.plans[number].wants;
        for (index, &one) in holders.iter().enumerate() {
            for &other in &holders[index + 1..] {
                // One caller has both sides.
                if self.line_of(one) == self.line_of(other) {
                    continue;
                }
                let is_semaphore = |want: &&Want| matches!(want.sort, Sort::Semaphore { .. });
                let mut exclusive = wants(one).iter().filter(|want| !is_semaphore(want));
                let clash = exclusive.find(|want| wants(other).iter().any(|it| want.excludes(it)));
                if let Some(want) = clash {
                    let detail = format!("clients {one} and {other} hold {}", want.queue);
                    return Err(Violation { property: "exclusive", detail });
                }
            }
        }
        for want in self.setup.plans.iter().flat_map(|plan| &plan.wants) {
            let Sort::Semaphore { permits, limit, .. } = want.sort else { continue };
            let of_it = |want: &&Want| want.hold().0 == permits;
            let held = holders.iter().flat_map(|&number| wants(number)).filter(of_it);
            let held: u32 = held.map(|want| want.hold().1).sum();
            let limit = limit_of(self.ensemble.head(), limit);
            if held > limit {
                let detail = format!("{held} permits of {limit} are held in {permits}");
                return Err(Violation { property: "exclusive", detail });
            }
        }
        Ok(())
    }

    /// Checks the properties that hold in every state.
    pub(crate) fn check_properties(&self) -> Result<(), Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        self.check_holders()?;
        self.check_herd()?;
        for (number, client) in self.clients.iter().enumerate() {
            let mut own = self.ensemble.head().children().map(|(_, child)| child);
            let is_left = |child: &&Child| is_ownerless(child, number, client);
            if let Some(child) = own.find(is_left) {
                let detail = format!("{} is there and its contender is gone", child.name);
                return Err(Violation { property: "nothing left behind", detail });
            }
            if client.contender.is_gone() && client.will_create(&self.lines[self.line_of(number)]) {
                let detail = format!("a node of client {number} will come, and its contender is gone");
                return Err(Violation { property: "nothing left behind", detail });
            }
        }
        Ok(())
    }

    /// Notes the tries that may find that somebody else has the lock.
    pub(crate) fn note_who_is_busy(&mut self) {
        for number in 0..self.clients.len() {
            let plan = &self.setup.plans[number];
            let tries = plan.patience == Patience::TriesOnce && self.clients[number].caller == Caller::Wants;
            if tries && plan.wants.iter().any(|want| self.is_taken(number, want)) {
                self.clients[number].was_busy = true;
            }
        }
    }

    /// Whether others hold the lock that this client wants, or are ahead of it in a queue.
    fn is_taken(&self, number: usize, want: &Want) -> bool {
        let head = self.ensemble.head();
        let others = |path: &str| head.children_of(path).filter(|child| child.owner.client != number).count();
        match want.sort {
            Sort::Semaphore { permits, count, limit, .. } => {
                others(permits) + count as usize > limit_of(head, limit) as usize
            }
            _ => others(want.queue) > 0,
        }
    }

    /// Checks, while nobody does anything but hold, that somebody is in the way of every waiter.
    pub(crate) fn check_waiting(&self) -> Result<(), Violation> {
        let waits = |number: &usize| self.clients[*number].caller == Caller::Wants && !self.is_done(*number);
        let can_go = |number: &usize| {
            let wants = &self.setup.plans[*number].wants;
            wants.iter().all(|want| self.is_free(*number, want))
        };
        self.check_that_no_client(
            |number| waits(number) && can_go(number),
            "waits for somebody",
            |number| format!("client {number} waits, and nobody is in its way"),
        )
    }

    /// Checks that there is no such client.
    pub(crate) fn check_that_no_client(
        &self,
        is_wrong: impl Fn(&usize) -> bool,
        property: &'static str,
        says: impl Fn(usize) -> String,
    ) -> Result<(), Violation> {
        let wrong = (0..self.clients.len()).find(is_wrong);
        wrong.map_or(Ok(()), |number| Err(Violation { property, detail: says(number) }))
    }

    /// Whether it is this client's turn in this queue, and its permits are free.
    fn is_free(&self, number: usize, want: &Want) -> bool {
        let head = self.ensemble.head();
        let Some(queue) = head.directory(want.queue) else { return false };
        let is_own = |child: &Child| child.owner.client == number;
        match want.sort {
            Sort::Single | Sort::Lone => return queue.children.is_empty(),
            Sort::Semaphore { permits, count, limit, .. } => {
                let taken = head.children_of(permits).filter(|child| !is_own(child)).count();
                if taken + count as usize > limit_of(head, limit) as usize {
                    return false;
                }
            }
            _ => {}
        }
        queue.children.iter().any(is_own)
            && self.before(number, want.queue).all(|child| self.is_idle(child.owner.client))
    }

    /// Checks, when nobody does anything any more, that every attempt has ended.
    pub(crate) fn check_end(&self) -> Result<(), Violation> {
        self.check_that_no_client(
            |number| !self.is_done(*number),
            "end",
            |number| format!("client {number} waits for ever: {:?}", self.clients[number].caller),
        )
    }
}

fn is_ownerless(child: &Child, number: usize, client: &Client) -> bool {
    let is_over = child.owner.attempt != client.attempt || client.contender.is_gone();
    child.owner.client == number && is_over
}

/// The current limit of permits. The limit never falls here.
fn limit_of(tree: &Tree, limit: u32) -> u32 {
    tree.limit.map_or(limit, |(limit, _)| limit)
}
