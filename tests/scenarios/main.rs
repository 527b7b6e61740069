//! The promises of zklock, against real ZooKeeper servers: a module for each promise, with a file for each kind of lock
//! that needs tests of its own. Topics that are not promises follow.

mod support;

// The promises.

/// Promise 1: holds that exclude each other are never good at the same time.
mod exclusive {
    mod kinds;
    mod mutex;
}

/// Promise 2: tokens of one path grow with every grant, and a write guarded by a lost hold is refused.
mod fenced {
    mod ensembles;
    mod kinds;
    mod mutex;
}

/// Promise 3: grants follow the order of the nodes, and a release wakes the next two waiters, never a herd.
mod fair {
    mod mutex;
    mod rwlock;
    mod semaphore;
    mod silence;
}

/// Promise 4: a call with a deadline returns by then, whatever the network does.
mod bounded {
    mod barrier;
    mod holder_named;
    mod kinds;
    mod mutex;
    mod rwlock;
    mod semaphore;
}

/// Promise 5: an attempt that came to nothing, and a release whose reply was lost, leave no node.
mod nothing_left_behind {
    mod barrier;
    mod exits;
    mod kinds;
    mod mutex;
}

/// Promise 6: a holder learns of a lost hold within one heartbeat, whatever the cause.
mod told {
    mod crowd;
    mod kinds;
    mod many;
    mod mutex;
    mod rwlock;
    mod without_heartbeat;
}

/// Promise 7: a grant is delivered only with a live lease, checked at the moment of delivery.
mod no_false_grant {
    mod kinds;
}

// Promises of every kind of lock.

/// Wrong arguments are reported where they come in.
mod bad_input {
    mod all;
    mod mutex;
    mod semaphore;
}

/// An owner may acquire its lock again and release it. Others may not.
mod owners {
    mod mutex;
    mod rwlock;
}

/// How a client comes to a session, and keeps it.
mod connection {
    mod late;
    mod lazy;
    mod listener;
    mod local_sessions;
    mod reconnect;
    mod renegotiated;
    mod tls;
}

/// Servers older than 3.5, which lack some requests.
mod servers;

/// The operator's calls.
mod admin {
    mod break_lock;
    mod browse;
    mod contenders;
    mod evict;
    mod observe;
}

/// Logins, and who may use what a client creates.
mod access {
    mod chroot;
    mod lists;
    mod login;
    mod refused;
    mod rights;
    mod rights_taken;
    mod sasl;
    mod secrets;
    mod undeletable;
}

/// Servers that break the protocol, and other programs that do anything they like below the lock's node.
mod hostile {
    mod fuzz;
    mod replies;
    mod servers;
    mod siblings;
}

mod dropped;
mod homemade;
mod naming;
mod patterns;
mod spans;
mod stats;
mod strangers;
mod tries;

// Features of a single kind.

mod mutex {
    mod confirm;
    mod crash;
    mod crowd;
    mod lease;
    mod numbers;
    mod one_node_a_process;
    mod parents;
    mod read;
    mod self_waits;
    mod started;
    mod threads;
    mod wire;
}

mod rwlock {
    mod curator;
    mod downgrade;
    mod handed_over;
    mod woken;
}

mod semaphore {
    mod head;
    mod limit;
    mod tries;
}

/// Nodes that stay for the next holder in their process, and holders that learn that others wait.
mod kept {
    mod deleted;
    mod linger;
    mod wanted;
}

/// Sets of locks.
mod all {
    mod together;
}

/// Any one of several locks.
mod any {
    mod first;
    mod owners;
}

mod single_node;

mod job;

mod barrier {
    mod crash;
    mod double;
    mod single;
}

// Tools of the scenarios.

/// Infrastructure: servers, proxies, operators.
mod ground_itself {
    mod faults;
    mod program;
    pub(crate) mod sequence;
}

/// The embedded server: with a zklock client, and with bare sockets where the exact bytes matter.
mod testkit {
    mod attacks;
    mod clock;
    mod console;
    mod ends;
    mod faults;
    mod freeze;
    mod limits;
    mod lost;
    mod profiles;
    mod program;
    mod sequence;
    mod sessions;
    mod tree;
    mod words;
}
