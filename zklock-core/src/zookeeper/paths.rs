//! Paths of nodes, put together and taken apart.

pub(super) fn join(directory: &str, name: &str) -> String {
    format!("{directory}/{name}")
}

pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}
