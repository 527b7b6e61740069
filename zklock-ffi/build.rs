//! What the shared library says of itself to the linker, where Cargo links it. The one that install.sh installs is linked
//! there, since its names have versions: rustc has a version script of its own, and GNU ld takes no second one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Before 1.0 a minor version may change the ABI: see "Versions" in zklock.h.
    let abi = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libzklock.so.{abi}");
    // Our threads outlive a dlclose, so the code must.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
