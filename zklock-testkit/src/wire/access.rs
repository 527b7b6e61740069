//! Access control: access lists, and the identities that a connection has proven.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crate::wire::code::Code;
use crate::wire::jute::{Malformed, Reader, Writer};
use crate::wire::profile::Profile;

/// The rights in an entry, as bits.
pub(crate) mod right {
    pub(crate) const READ: i32 = 1;
    pub(crate) const WRITE: i32 = 2;
    pub(crate) const CREATE: i32 = 4;
    pub(crate) const DELETE: i32 = 8;
    pub(crate) const ADMIN: i32 = 16;
    pub(crate) const ALL: i32 = 31;
}

/// An identity of a scheme: `world:anyone`, `digest:user:hash`, `ip:127.0.0.1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) scheme: String,
    pub(crate) id: String,
}

/// The access list of a node.
pub(crate) type List = Arc<[Entry]>;

/// An entry as a client sends it. Either string may be null, and ZooKeeper accepts some nulls: a client that asks for
/// `auth`, as kazoo does, need not name a user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    rights: i32,
    scheme: Option<String>,
    id: Option<String>,
}

/// An entry of an access list: an identity and its rights.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) rights: i32,
    pub(crate) who: Id,
}

impl Wanted {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { rights: reader.int()?, scheme: reader.text()?, id: reader.text()? })
    }
}

impl Entry {
    pub(crate) fn anyone(rights: i32) -> Self {
        Self { rights, who: Id::new("world", "anyone") }
    }

    pub(crate) fn write(&self, writer: Writer) -> Writer {
        writer.int(self.rights).text(&self.who.scheme).text(&self.who.id)
    }

    /// The list for clients that may not see password hashes.
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

    /// The identity of a client that has shown `user:password`, with the hash as in access lists.
    pub(crate) fn digest(credentials: &[u8]) -> Self {
        let credentials = String::from_utf8_lossy(credentials);
        let user = credentials.split(':').next().unwrap_or_default();
        let hash = sha1_smol::Sha1::from(credentials.as_bytes()).digest().bytes();
        Self::new("digest", &format!("{user}:{}", base64(&hash)))
    }

    /// The name without the proof.
    pub(crate) fn user(&self) -> &str {
        if self.scheme == "digest" { self.id.split(':').next().unwrap_or_default() } else { &self.id }
    }

    /// Whether the identity may be in an access list.
    fn is_valid(&self) -> bool {
        match self.scheme.as_str() {
            "world" => self.id == "anyone",
            // Like Java's split: empty parts at the end do not count.
            "digest" => self.id.trim_end_matches(':').split(':').count() == 2,
            "ip" => network(&self.id).is_some(),
            _ => false,
        }
    }

    /// Whether this entry covers a connection with the identity `other`.
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

/// `1.2.3.4` or `1.2.3.4/16`: an address and the number of bits that count.
fn network(text: &str) -> Option<(u32, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok().filter(|&bits| bits <= 32)?),
        None => (text, 32),
    };
    Some((address.parse::<Ipv4Addr>().ok()?.into(), bits))
}

/// Whether this list gives one of the identities `shown` one of the `rights`. An empty list allows everything.
pub(crate) fn check(list: &[Entry], rights: i32, shown: &[Id]) -> Result<(), Code> {
    let allows = |entry: &Entry| {
        entry.rights & rights != 0
            && (entry.who == Id::new("world", "anyone") || shown.iter().any(|id| entry.who.covers(id)))
    };
    if list.is_empty() || list.iter().any(allows) { Ok(()) } else { Err(Code::NoAuth) }
}

/// The list as it is stored: without duplicates, and with the identities that `auth` stands for.
pub(crate) fn settle(profile: Profile, list: &[Wanted], shown: &[Id]) -> Result<List, Code> {
    let mut settled = Vec::new();
    for Wanted { rights, scheme, id } in without_repetitions(list)? {
        let scheme = scheme.as_deref().ok_or(profile.code_of_no_scheme())?;
        if scheme == "auth" {
            // An address proves no identity.
            let proven: Vec<_> = shown.iter().filter(|id| id.scheme != "ip").collect();
            if proven.is_empty() {
                return Err(Code::InvalidAcl);
            }
            settled.extend(proven.into_iter().map(|id| Entry { rights: *rights, who: id.clone() }));
            continue;
        }
        let who = match id {
            Some(id) => Id::new(scheme, id),
            // The schemes that parse it fail on a null.
            None if matches!(scheme, "world" | "digest" | "ip") => return Err(Code::MarshallingError),
            None => return Err(Code::InvalidAcl),
        };
        let is_network = who.scheme == "ip" && who.id.contains('/');
        if !who.is_valid() || is_network && !profile.lists_networks() {
            return Err(Code::InvalidAcl);
        }
        settled.push(Entry { rights: *rights, who });
    }
    if settled.is_empty() { Err(Code::InvalidAcl) } else { Ok(settled.into()) }
}

/// ZooKeeper compares each entry with the earlier ones, field by field as long as they are equal, and fails on a null in
/// the later one.
fn without_repetitions(list: &[Wanted]) -> Result<Vec<&Wanted>, Code> {
    let (mut rights, mut schemes, mut entries) = (HashSet::new(), HashSet::new(), HashSet::new());
    let mut unique = Vec::new();
    for wanted in list {
        let is_broken = match (&wanted.scheme, &wanted.id) {
            (None, _) => rights.contains(&wanted.rights),
            (scheme, None) => schemes.contains(&(wanted.rights, scheme)),
            _ => false,
        };
        if is_broken {
            return Err(Code::MarshallingError);
        }
        rights.insert(wanted.rights);
        schemes.insert((wanted.rights, &wanted.scheme));
        if entries.insert(wanted) {
            unique.push(wanted);
        }
    }
    Ok(unique)
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
    fn a_null_is_taken_where_zookeeper_takes_it() {
        let shown = [Id::new("ip", "127.0.0.1"), Id::digest(b"u:p")];
        let wanted = |&(rights, scheme, id): &(i32, Option<&str>, Option<&str>)| Wanted {
            rights,
            scheme: scheme.map(str::to_owned),
            id: id.map(str::to_owned),
        };
        let settled =
            |list: &[_]| settle(Profile::V3_8, &list.iter().map(wanted).collect::<Vec<_>>(), &shown);
        let mine = |rights| Entry { rights, who: shown[1].clone() };
        let (auth, world, anyone) = (Some("auth"), Some("world"), Some("anyone"));
        // Seen with 3.8.0; kazoo's CREATOR_ALL_ACL is the first.
        assert_eq!(settled(&[(31, auth, None)]).as_deref(), Ok(&[mine(31)][..]));
        assert_eq!(settled(&[(31, auth, None), (1, auth, None)]).as_deref(), Ok(&[mine(31), mine(1)][..]));
        assert_eq!(
            settled(&[(31, auth, None), (31, auth, Some(""))]).as_deref(),
            Ok(&[mine(31), mine(31)][..])
        );
        for (list, code) in [
            (&[(31, auth, None), (31, auth, None)][..], Code::MarshallingError),
            (&[(31, auth, Some("")), (31, auth, None)], Code::MarshallingError),
            (&[(31, world, None)], Code::MarshallingError),
            (&[(31, Some("digest"), None)], Code::MarshallingError),
            (&[(31, Some("ip"), None)], Code::MarshallingError),
            (&[(31, world, anyone), (31, None, anyone)], Code::MarshallingError),
            (&[(1, world, anyone), (31, None, anyone)], Code::InvalidAcl),
            (&[(31, None, None)], Code::InvalidAcl),
            (&[(31, Some("x509"), None)], Code::InvalidAcl),
            (&[(31, Some(""), None)], Code::InvalidAcl),
        ] {
            assert_eq!(settled(list), Err(code), "{list:?}");
        }
        assert_eq!(
            settle(Profile::V3_8, &[wanted(&(31, auth, None))], &shown[..1]),
            Err(Code::InvalidAcl),
            "nobody"
        );
    }
}
