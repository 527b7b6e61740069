//! Who may do what: access lists, and the identities that a connection has shown.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::code::Code;
use crate::jute::{Malformed, Reader, Writer};

/// Rights, as bits of an entry.
pub(crate) mod right {
    pub(crate) const READ: i32 = 1;
    pub(crate) const WRITE: i32 = 2;
    pub(crate) const CREATE: i32 = 4;
    pub(crate) const DELETE: i32 = 8;
    pub(crate) const ADMIN: i32 = 16;
    pub(crate) const ALL: i32 = 31;
}

/// Somebody, in the words of a scheme: `world:anyone`, `digest:user:hash`, `ip:127.0.0.1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) scheme: String,
    pub(crate) id: String,
}

/// Who may do what with a node.
pub(crate) type List = Arc<[Entry]>;

/// One entry of an access list: these may do that.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) rights: i32,
    pub(crate) who: Id,
}

impl Entry {
    pub(crate) fn anyone(rights: i32) -> Self {
        Self { rights, who: Id::new("world", "anyone") }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let rights = reader.int()?;
        Ok(Self { rights, who: Id { scheme: reader.some_text()?, id: reader.some_text()? } })
    }

    pub(crate) fn write(&self, writer: Writer) -> Writer {
        writer.int(self.rights).text(&self.who.scheme).text(&self.who.id)
    }

    /// The same for those who may not see hashes of passwords.
    pub(crate) fn veiled(&self) -> Self {
        let mut veiled = self.clone();
        if self.who.scheme == "digest" {
            veiled.who.id = format!("{}:x", self.who.user());
        }
        veiled
    }
}

impl Id {
    pub(crate) fn new(scheme: &str, id: &str) -> Self {
        Self { scheme: scheme.to_owned(), id: id.to_owned() }
    }

    /// Who has shown `user:password`; with the hash that stands in access lists.
    pub(crate) fn digest(credentials: &[u8]) -> Self {
        let credentials = String::from_utf8_lossy(credentials);
        let user = credentials.split(':').next().unwrap_or_default();
        let hash = sha1_smol::Sha1::from(credentials.as_bytes()).digest().bytes();
        Self::new("digest", &format!("{user}:{}", base64(&hash)))
    }

    /// The name without what proves it.
    pub(crate) fn user(&self) -> &str {
        if self.scheme == "digest" { self.id.split(':').next().unwrap_or_default() } else { &self.id }
    }

    /// Whether it can stand in an access list.
    fn is_valid(&self) -> bool {
        match self.scheme.as_str() {
            "world" => self.id == "anyone",
            // What Java's split makes of it: empty parts at the end do not count.
            "digest" => self.id.trim_end_matches(':').split(':').count() == 2,
            "ip" => network(&self.id).is_some(),
            _ => false,
        }
    }

    /// Whether a connection that is `other` is meant.
    fn covers(&self, other: &Self) -> bool {
        if self.scheme != other.scheme {
            return false;
        }
        match self.scheme.as_str() {
            "ip" => match (network(&self.id), network(&other.id)) {
                (Some((network, bits)), Some((address, _))) => {
                    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                    network & mask == address & mask
                }
                _ => false,
            },
            _ => self.id == other.id,
        }
    }
}

/// `1.2.3.4` or `1.2.3.4/16`: the address and the number of bits that count.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok().filter(|&bits| bits <= 32)?),
        None => (text, 32),
    };
    Some((address.parse::<Ipv4Addr>().ok()?.into(), bits))
}

/// Whether one of `shown` has one of the `rights` by this list. An empty list allows everything.
pub(crate) fn check(list: &[Entry], rights: i32, shown: &[Id]) -> Result<(), Code> {
    let allows = |entry: &Entry| {
        entry.rights & rights != 0
            && (entry.who == Id::new("world", "anyone") || shown.iter().any(|id| entry.who.covers(id)))
    };
    if list.is_empty() || list.iter().any(allows) { Ok(()) } else { Err(Code::NoAuth) }
}

/// The list as it is stored: without repetitions, and with the identities that `auth` stands for.
pub(crate) fn settle(list: &[Entry], shown: &[Id]) -> Result<List, Code> {
    let mut settled = Vec::new();
    let mut seen = HashSet::new();
    for entry in list.iter().filter(|entry| seen.insert(*entry)) {
        if entry.who.scheme == "auth" {
            // An address proves nobody.
            let proven: Vec<_> = shown.iter().filter(|id| id.scheme != "ip").collect();
            if proven.is_empty() {
                return Err(Code::InvalidAcl);
            }
            settled.extend(proven.into_iter().map(|id| Entry { rights: entry.rights, who: id.clone() }));
        } else if entry.who.is_valid() {
            settled.push(entry.clone());
        } else {
            return Err(Code::InvalidAcl);
        }
    }
    if settled.is_empty() { Err(Code::InvalidAcl) } else { Ok(settled.into()) }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (word >> (18 - 6 * digit)) & 0x3f;
            text.push(if digit <= chunk.len() { DIGITS[value as usize].into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_becomes_the_hash_that_zookeeper_makes_of_it() {
        // From ZooKeeper's documentation of digest authentication.
        assert_eq!(Id::digest(b"super:admin").id, "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
    }

    #[test]
    fn an_address_is_covered_by_its_network_alone() {
        let here = Id::new("ip", "127.0.0.1");
        for (network, is_here) in [
            ("127.0.0.1", true),
            ("127.0.0.0/8", true),
            ("0.0.0.0/0", true),
            ("127.0.0.2", false),
            ("10.0.0.0/8", false),
        ] {
            assert_eq!(Id::new("ip", network).covers(&here), is_here, "{network}");
        }
        for bad in ["", "1.2.3", "1.2.3.256", "1.2.3.4/33", "1.2.3.4/x"] {
            assert!(!Id::new("ip", bad).is_valid(), "{bad}");
        }
    }

    #[test]
    fn a_list_without_the_identity_refuses() {
        let user = Id::digest(b"user:secret");
        let list = [Entry { rights: right::READ, who: user.clone() }];
        assert_eq!(check(&list, right::READ, &[]), Err(Code::NoAuth));
        assert_eq!(check(&list, right::READ, std::slice::from_ref(&user)), Ok(()));
        assert_eq!(check(&list, right::WRITE, &[user]), Err(Code::NoAuth));
    }
}
