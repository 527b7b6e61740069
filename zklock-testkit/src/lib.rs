//! An in-memory ZooKeeper server for development and tests. It speaks the wire protocol, and fails on demand.
//!
//! **It keeps nothing**: when it ends, everything is gone. It is a single server, never an ensemble, and does not replace
//! one. Use it to try out and test code that needs ZooKeeper, without Java and in milliseconds. And use it to make failures
//! that a real server shows once a year happen in a test, at exactly the message that you choose.
//!
//! Any ZooKeeper client can use it. Generated conversations compare it with ZooKeeper 3.8, reply by reply. The README lists
//! what it does not support.
//!
//! # Examples
//!
//! End a client's session while it works, at exactly its next heartbeat:
//!
//! ```
//! use zklock_testkit::{Fault, Kind, Server};
//!
//! let server = Server::builder().manual_clock().start()?;
//! let injected = server.inject(Fault::expire(Kind::Multi));
//! // ... run the code under test against server.connect_string() ...
//! # assert_eq!(injected.strikes(), 0);
//! # Ok::<(), zklock_testkit::StartError>(())
//! ```

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .      console                      for the program
//        server                       the API
//        net                          sockets and threads
//        hub                          one lock; where faults strike
//        fault clock                  which message, and what happens to it; a clock that can be put forward
// state  report                       the answers to four-letter words
//        world                        sessions and connections; time is a parameter, what to send is the answer
//        transaction                  may it be done?
//        tree watches                 the nodes, with undo; who hears of a change
//        graveyard                    what was deleted lately
//        node connection settings     one node, one connection, and how the server is set up
// wire   request frame                what is read from the wire
//        access path words            what stands in a message
//        profile                      the servers that can be imitated
//        jute code kind               how a message is encoded, its numbers, and the kinds of messages
// ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod clock;
pub mod console;
mod fault;
mod hub;
mod net;
mod server;
mod state;
mod wire;

pub use fault::{Fault, Injected};
pub use server::{BadPath, Builder, Server, Session, StartError};
pub use wire::kind::{Kind, UnknownKind};
pub use wire::profile::UnknownProfile;
