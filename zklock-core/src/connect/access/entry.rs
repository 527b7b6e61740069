//! One entry of an access list: who it names, and what they may do.

use crate::base::error::{Error, ErrorKind};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A SHA-1 in Base64.
const LENGTH_OF_HASH: usize = 28;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) scheme: Box<str>,
    pub(crate) id: Box<str>,
    /// Some of the letters `cdrwa`, in this order.
    pub(crate) rights: Box<str>,
}

impl Entry {
    pub(super) fn is_of_creator(&self) -> bool {
        &*self.scheme == "auth"
    }

    /// Returns an upper bound for its bytes in a request.
    pub(super) fn bytes(&self) -> usize {
        self.scheme.len() + self.id.len() + 12
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.scheme, self.id, self.rights)
    }
}

/// Without a hash of a password.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id =
            if &*self.scheme == "digest" { self.id.split(':').next().unwrap_or_default() } else { &self.id };
        write!(f, "{}:{id}:{}", self.scheme, self.rights)
    }
}

/// No error quotes the text, which may have a password in a wrong place.
impl FromStr for Entry {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |problem: String| Error::new(ErrorKind::InvalidInput, problem);
        let parts = text.split_once(':').and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once(':')?)));
        let Some((scheme, (id, letters))) = parts else {
            let form = "it is not of the form scheme:id:rights, such as sasl:billing:cdrwa";
            return Err(invalid(form.to_owned()));
        };
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        if scheme.is_empty() || !scheme.chars().all(fits) {
            let form = "the scheme must consist of lowercase letters, digits and hyphens, such as sasl";
            return Err(invalid(form.to_owned()));
        }
        let rights: String = "cdrwa".chars().filter(|letter| letters.contains(*letter)).collect();
        let problem = match scheme {
            _ if id.contains('\0') => "there is a NUL in it: leave it out",
            "world" if id != "anyone" => "it is world:anyone and the rights",
            "auth" if !id.is_empty() => "it names the creator of the node: write auth:: and the rights",
            "digest" if !is_hashed(id) => {
                "it is the user, a colon and the hash of both, which has 28 characters, and not the password"
            }
            "ip" if !is_network(id) => "it is an address, or a network such as 10.0.0.0/8",
            _ if id.is_empty() && scheme != "auth" => "it names nobody: put the name between the colons",
            _ if rights.is_empty() || rights.len() != letters.len() => {
                "the rights, after the last colon, are some of the letters cdrwa, each once"
            }
            _ => return Ok(Self { scheme: scheme.into(), id: id.into(), rights: rights.into() }),
        };
        Err(invalid(format!("the {scheme} entry: {problem}")))
    }
}

fn is_hashed(id: &str) -> bool {
    id.split_once(':').is_some_and(|(user, hash)| {
        let is_digit = |letter: char| letter.is_ascii_alphanumeric() || letter == '+' || letter == '/';
        let digits = hash.strip_suffix('=').unwrap_or_default();
        !user.is_empty() && hash.len() == LENGTH_OF_HASH && digits.chars().all(is_digit)
    })
}

fn is_network(id: &str) -> bool {
    let (address, bits) = match id.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (id, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
}
