//! Paths and connect strings, checked where they come in, so that the message names the mistake at
//! once. Otherwise a server would refuse something else later.

use crate::base::error::{Error, ErrorKind};

/// Longer paths are refused, because one request has to hold the paths of many nodes.
const LONGEST: usize = 2048;

/// Checks whether a lock may be at this path. Contenders become children of its node.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if not. The message says why.
///
/// # Examples
///
/// ```
/// assert!(zklock::further::check_lock_path("/locks/report").is_ok());
/// assert!(zklock::further::check_lock_path("locks/report").is_err());
/// ```
pub fn check_lock_path(path: &str) -> Result<(), Error> {
    check_path(path)?;
    if path == "/" {
        return Err(invalid(path, "is the root: name a node below it, such as /locks/report"));
    }
    if path == "/zookeeper" || path.starts_with("/zookeeper/") {
        return Err(invalid(path, "belongs to ZooKeeper itself: name another node, such as /locks/report"));
    }
    Ok(())
}

/// Checks the path of any node.
pub(crate) fn check_path(path: &str) -> Result<(), Error> {
    let problem = if path.is_empty() {
        "is empty: a path begins with /, such as /locks/report"
    } else if !path.starts_with('/') {
        "is relative: a path begins with /, such as /locks/report"
    } else if path.len() > LONGEST {
        return Err(invalid(path, &format!("is longer than {LONGEST} bytes: shorten it")));
    } else if path.len() > 1 && path.ends_with('/') {
        "ends with /: leave that out"
    } else if path.contains("//") {
        "contains //: leave one out"
    } else if path.split('/').any(|name| name == "." || name == "..") {
        "contains . or .. as a name: ZooKeeper has no relative paths"
    } else if path.chars().any(is_forbidden) {
        "contains a character that ZooKeeper forbids (NUL, a control character, a private one, one beyond U+FFEF): leave it out"
    } else {
        return Ok(());
    };
    Err(invalid(path, problem))
}

/// Whether the servers forbid this character in a path.
fn is_forbidden(character: char) -> bool {
    // The server sees a character beyond 16 bits as two surrogates.
    matches!(u32::from(character), 0..=0x1F | 0x7F..=0x9F | 0xD800..=0xF8FF | 0xFFF0..)
}

fn invalid(path: &str, problem: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::new(ErrorKind::InvalidInput, format!("the path {shown:?} {problem}"))
}

/// The parts of a connect string `host:port,host:port/chroot`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    pub(crate) servers: Vec<(String, u16)>,
    /// Empty if there is none.
    pub(crate) chroot: String,
}

impl Hosts {
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        if let Some((scheme, _)) = text.split_once("://") {
            let scheme = scheme.rsplit(',').next().unwrap_or_default().trim();
            let scheme = format!("{scheme}://");
            let rest = text.replace(&scheme, "");
            return Err(wrong(text, &format!("leave out {scheme}, which gives {rest:?}")));
        }
        let (list, chroot) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let chroot = if chroot == "/" { "" } else { chroot };
        if chroot.contains(',') {
            let message = format!(
                "the hosts {text:?}: write the chroot once, after the last host, such as \
                 zk1:2181,zk2:2181/apps; if it has a comma in its name, set it with the option for the \
                 chroot"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if !chroot.is_empty() {
            check_path(chroot).map_err(|error| error.within(&format!("the chroot of the hosts {text:?}")))?;
        }
        let servers =
            list.split(',').map(|server| parse_server(server.trim(), text)).collect::<Result<_, _>>()?;
        Ok(Self { servers, chroot: chroot.to_owned() })
    }

    /// Returns the hosts in the form that the client library parses.
    pub(crate) fn connect_string(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(|(host, port)| written(host, *port)).collect();
        servers.join(",") + &self.chroot
    }
}

/// Returns a server's address in the form that the client library parses.
pub(crate) fn written(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn wrong(text: &str, problem: &str) -> Error {
    let message =
        format!("the hosts {text:?}: {problem}; write host:port,host:port, such as zk1:2181,zk2:2181");
    Error::new(ErrorKind::InvalidInput, message)
}

fn parse_server(server: &str, text: &str) -> Result<(String, u16), Error> {
    let wrong = |problem: &str| wrong(text, problem);
    if !server.starts_with('[') && server.matches(':').count() > 1 {
        let problem = "has several colons: put an IPv6 address in brackets, such as [::1]:2181";
        return Err(wrong(&format!("{server:?} {problem}")));
    }
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("a [ without its ]"))?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("2181")))
        }
        None => match server.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, Some("2181")),
        },
    };
    let port = port.and_then(|port| port.parse().ok()).filter(|port| *port != 0);
    let port = port.ok_or_else(|| wrong(&format!("{server:?} has no valid port")))?;
    if host.is_empty() || host.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err(wrong(&format!("{server:?} has no valid host")));
    }
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_path_is_named_with_what_to_do() {
        let long = format!("/{}", "a".repeat(LONGEST));
        for (path, says) in [
            ("", "is empty"),
            ("locks/report", "is relative"),
            ("/locks//report", "contains //"),
            ("/locks/", "ends with /"),
            ("/locks/../report", "no relative paths"),
            ("/.", "no relative paths"),
            ("/a\0b", "forbids"),
            ("/a\u{7f}", "forbids"),
            ("/a\u{fffd}", "forbids"),
            ("/", "is the root"),
            ("/zookeeper/quota", "belongs to ZooKeeper"),
            (&long, "longer than 2048"),
        ] {
            let error = check_lock_path(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{path:?}: {error}");
        }
        for path in ["/a", "/locks/report", "/Länge/路径", "/.a/b..", "/zookeeper2"] {
            check_lock_path(path).unwrap();
        }
    }

    #[test]
    fn connect_strings_are_read() {
        let hosts = Hosts::parse("zk1:2182, zk2 ,[::1]:99/apps/a").unwrap();
        let servers = [("zk1", 2182), ("zk2", 2181), ("::1", 99)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!(hosts, Hosts { servers: servers.to_vec(), chroot: "/apps/a".into() });
        assert_eq!(hosts.connect_string(), "zk1:2182,zk2:2181,[::1]:99/apps/a");
        assert_eq!(Hosts::parse("zk1/").unwrap().chroot, "");
        assert_eq!(Hosts::parse("[::1]").unwrap().servers, [("::1".to_owned(), 2181)]);
    }

    #[test]
    fn bad_connect_strings_are_refused() {
        for text in [
            "",
            ",",
            "zk1:0",
            "zk1:x",
            "zk1:70000",
            ":2181",
            "zk 1:2181",
            "[::1",
            "[::1]x",
            "zk1,,zk2",
            "zk1/a/",
            "zk1//",
        ] {
            assert_eq!(Hosts::parse(text).unwrap_err().kind(), ErrorKind::InvalidInput, "{text:?}");
        }
    }

    #[test]
    fn what_others_call_hosts_is_told_what_to_write() {
        for (text, says) in [
            ("http://zk1:2181", "leave out http://, which gives \"zk1:2181\""),
            ("zookeeper://zk1:2181,zk2:2181/apps", "which gives \"zk1:2181,zk2:2181/apps\""),
            ("zk1:2181, zk://zk2:2181", "leave out zk://, which gives \"zk1:2181, zk2:2181\""),
            ("::1", "in brackets, such as [::1]:2181"),
            ("zk1,fe80::1%eth0", "in brackets"),
            ("zk1:2181:2182", "has several colons"),
            ("a:1/x,b:2/y", "after the last host, such as"),
            ("a:1/x,b:2", "after the last host, such as"),
        ] {
            let error = Hosts::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:?}");
            assert!(error.to_string().contains(says) && error.to_string().contains(text), "{error}");
        }
    }
}
