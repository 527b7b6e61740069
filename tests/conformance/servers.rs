//! The two servers: a real one, and one that must agree with it.

use std::net::SocketAddr;
use std::thread;

use ground::Ensemble;

/// The user that cleans up after conversations, whatever access lists they left.
const SUPER_USER: &str =
    "zookeeper.DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=";
const EXTENDED: &str = "zookeeper.extendedTypesEnabled=true";

/// A running server, which ends when this is dropped.
#[derive(Debug)]
pub(crate) enum Server {
    Real(Ensemble),
    Embedded(zklock_testkit::Server),
}

/// The servers to compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// Whether nodes may have a time to live.
    pub(crate) is_extended: bool,
    /// Whether it is 3.4.
    pub(crate) is_old: bool,
}

/// A real server, and the other one: `real` or `embedded`.
pub(crate) fn pair(against: &str, terms: Terms) -> (Server, Server) {
    let real = thread::spawn(move || real(terms));
    let other = match against {
        "real" => self::real(terms),
        "embedded" => embedded(terms),
        other => panic!("--against takes real or embedded, not {other}"),
    };
    (real.join().expect("a real server"), other)
}

fn real(terms: Terms) -> Server {
    let builder = Ensemble::builder().property(SUPER_USER);
    let builder = if terms.is_old { builder.version("3.4.14") } else { builder };
    Server::Real(if terms.is_extended { builder.property(EXTENDED) } else { builder }.start())
}

fn embedded(terms: Terms) -> Server {
    let builder = zklock_testkit::Server::builder().extended_types(terms.is_extended);
    let builder = builder.like(if terms.is_old { "3.4" } else { "3.8" }).expect("it can be copied");
    Server::Embedded(builder.start().expect("an embedded server"))
}

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Real(ensemble) => ensemble.server(0).address(),
            Self::Embedded(server) => server.address(),
        }
    }
}
