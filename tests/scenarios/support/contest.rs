//! Contenders for one lock. The register panics if more of them hold it at once than its kind allows.

use crate::support::register::{Faults, Register, expired};
use crate::support::{SOON, operator, settled};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::{Client, Lock};

/// The resource of a contest, and its contenders.
pub(crate) struct Contest {
    pub(crate) path: &'static str,
    /// The directories of its nodes, below the path.
    pub(crate) places: &'static [&'static str],
    /// How much may be held at once.
    pub(crate) limit: u32,
    pub(crate) clients: usize,
    pub(crate) contenders: usize,
    /// The lock of the contender with this number, and how much it holds.
    pub(crate) lock: fn(&Client, &str, usize) -> (Lock, u32),
    /// How long a hold lasts.
    pub(crate) lasts: Duration,
    /// How many holds are there at once, at least once before the end.
    pub(crate) meet: usize,
}

impl Contest {
    /// Runs for this time, while connections break and sessions end, and then until everybody can have had another turn. Also
    /// returns how many sessions have ended.
    pub(crate) async fn under_faults(&self, time: Duration) -> (Arc<Register>, u64) {
        let (clients, mut faults) = Faults::beset(self.clients).await;
        let work = async {
            tokio::time::sleep(time).await;
            faults.end();
        };
        let register = self.run(&clients, work).await;
        let expired = expired(&clients);
        println!("{expired} sessions ended");
        (register, expired)
    }

    async fn run(&self, clients: &[Client], work: impl Future<Output = ()>) -> Arc<Register> {
        let (register, ended) = (Register::of(self.limit), Arc::new(AtomicBool::new(false)));
        let (mut contenders, lasts) = (JoinSet::new(), self.lasts);
        for (number, client) in clients.iter().cycle().take(self.contenders).enumerate() {
            let (lock, weight) = (self.lock)(client, self.path, number);
            let (register, ended) = (register.clone(), ended.clone());
            contenders.spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    register.turn(&lock, weight, lasts).await;
                }
            });
        }
        work.await;
        // Grants must go on after the last fault.
        let enough = register.count() + self.contenders;
        let more = async {
            while register.count() < enough || register.most() < self.meet {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON * 2, more).await.expect("others get in, and as many at once as can be");
        ended.store(true, Ordering::Relaxed);
        tokio::time::timeout(SOON * 2, contenders.join_all()).await.expect("everybody has a turn");
        println!("{} grants, {} holds at once", register.count(), register.most());
        for client in clients {
            settled(client).await;
        }
        for place in self.places {
            operator().wait_for_children(&format!("{}{place}", self.path), 0, SOON);
        }
        register
    }
}
