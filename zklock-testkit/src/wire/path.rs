//! Rules for paths.

use crate::wire::code::Code;
use crate::wire::profile::Profile;

/// ZooKeeper's rules for the path of a node. It checks UTF-16 units.
pub(crate) fn validate(profile: Profile, path: &str) -> Result<(), Code> {
    let Some(below) = path.strip_prefix('/') else { return Err(Code::BadArguments) };
    if below.is_empty() {
        return Ok(());
    }
    let is_name = |name: &str| !matches!(name, "" | "." | "..");
    if below.split('/').all(is_name) && below.encode_utf16().all(|unit| is_allowed(profile, unit)) {
        Ok(())
    } else {
        Err(Code::BadArguments)
    }
}

/// ZooKeeper 3.4 allowed the first and the last of the forbidden characters.
fn is_allowed(profile: Profile, unit: u16) -> bool {
    let is_forbidden = matches!(unit, 0..=0x1f | 0x7f..=0x9f | 0xd800..=0xf8ff | 0xfff0..);
    let is_edge = matches!(unit, 0x1f | 0x7f | 0x9f | 0xd800 | 0xf8ff | 0xfff0 | 0xffff);
    !is_forbidden || is_edge && profile.allows_edges()
}

/// The parent of a path, which may be invalid. The parent of `/a` is the empty path, which also stands for the root.
pub(crate) fn parent(path: &str) -> Result<&str, Code> {
    if path.contains('\0') {
        return Err(Code::BadArguments);
    }
    path.rfind('/').map(|slash| &path[..slash]).ok_or(Code::BadArguments)
}

/// The path itself, then its parents up to the root: all the places where a recursive watch on it may be.
pub(crate) fn upwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| match path.rfind('/') {
        Some(0) if path.len() > 1 => Some("/"),
        Some(slash) if slash > 0 => Some(&path[..slash]),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_what_zookeeper_takes_for_paths() {
        for fine in ["/", "/a", "/a/b", "/a.b", "/...", "/a..", "/.a", "/ä€", "/a b"] {
            assert_eq!(validate(Profile::V3_8, fine), Ok(()), "{fine}");
        }
        for bad in [
            "",
            "a",
            "/a/",
            "//",
            "/a//b",
            "/.",
            "/..",
            "/a/./b",
            "/a/..",
            "/\0",
            "/\u{1f}",
            "/\u{fffd}",
            "/😀",
        ] {
            assert_eq!(validate(Profile::V3_8, bad), Err(Code::BadArguments), "{bad}");
        }
    }

    #[test]
    fn a_path_is_followed_by_its_parents() {
        assert_eq!(upwards("/a/b/c").collect::<Vec<_>>(), ["/a/b/c", "/a/b", "/a", "/"]);
        assert_eq!(upwards("/a").collect::<Vec<_>>(), ["/a", "/"]);
        assert_eq!(upwards("/").collect::<Vec<_>>(), ["/"]);
    }
}
