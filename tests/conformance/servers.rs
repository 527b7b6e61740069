//! The two servers: a real one, and the one that is to agree with it.

use std::net::SocketAddr;
use std::thread;

use ground::Ensemble;

/// For cleaning up after conversations, whatever permissions they left.
const SUPER_USER: &str =
    "zookeeper.DigestAuthenticationProvider.superDigest=super:lK75jTNcA+U9vtVEw5vB51mj/w4=";
const EXTENDED: &str = "zookeeper.extendedTypesEnabled=true";

/// A running server. It ends with this.
#[derive(Debug)]
pub(crate) enum Server {
    Real(Ensemble),
    Embedded(zklock_testkit::Server),
}

/// A real server, and the other one: `real` or `embedded`.
pub(crate) fn pair(against: &str, is_extended: bool) -> (Server, Server) {
    let real = thread::spawn(move || real(is_extended));
    let other = match against {
        "real" => self::real(is_extended),
        "embedded" => embedded(is_extended),
        other => panic!("--against takes real or embedded, not {other}"),
    };
    (real.join().expect("a real server"), other)
}

fn real(is_extended: bool) -> Server {
    let builder = Ensemble::builder().property(SUPER_USER);
    Server::Real(if is_extended { builder.property(EXTENDED) } else { builder }.start())
}

fn embedded(is_extended: bool) -> Server {
    let builder = zklock_testkit::Server::builder().extended_types(is_extended);
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
