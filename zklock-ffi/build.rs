//! Tells the linker about the shared library when Cargo links it. The library that install.sh
//! installs is linked by install.sh, because its names have versions: rustc passes its own version
//! script, and GNU ld does not accept a second one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Before 1.0 a minor version may change the ABI: see "Versions" in zklock.h.
    let abi = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libzklock.so.{abi}");
    // Our threads outlive a dlclose, so the code must stay loaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
