//! What the shared library says of itself to the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs that were linked with one version run with every later one of the same major.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libzklock.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    // Our threads outlive a dlclose, so the code must.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
