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

/// A real server, and the other one: `real` or `embedded`. Nodes may have a time to live if they are extended, and old ones are of 3.4.
pub(crate) fn pair(against: &str, is_extended: bool, is_old: bool) -> (Server, Server) {
    let real = thread::spawn(move || real(is_extended, is_old));
    let other = match against {
        "real" => self::real(is_extended, is_old),
        "embedded" => embedded(is_extended, is_old),
        other => panic!("--against takes real or embedded, not {other}"),
    };
    (real.join().expect("a real server"), other)
}

fn real(is_extended: bool, is_old: bool) -> Server {
    let builder = Ensemble::builder().property(SUPER_USER);
    let builder = if is_old { builder.version("3.4.14") } else { builder };
    Server::Real(if is_extended { builder.property(EXTENDED) } else { builder }.start())
}

fn embedded(is_extended: bool, is_old: bool) -> Server {
    let builder = zklock_testkit::Server::builder().extended_types(is_extended);
    let builder = builder.like(if is_old { "3.4" } else { "3.8" }).expect("it can be copied");
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
