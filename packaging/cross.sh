# Sourced by scripts that compile for several targets. All use one folder, one profile and one linker for a target, so that Cargo
# compiles once what several packages need.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/tests/debian.sh"
version=$("$root/packaging/version")
machines=(x86_64 aarch64)
scratch=$root/target/packaging
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$scratch}
tools=$scratch/tools
export PATH=$tools/bin:$PATH
fail() {
  echo "${0#"$root/"}: $*" >&2
  exit 1
}

install_tools() { # the packages in requirements.txt, and Rust's own library for each target
  local wanted=$root/packaging/requirements.txt missing=() target
  if ! cmp -s "$wanted" "$tools/requirements.txt"; then
    rm -rf "$tools"
    python3 -m venv "$tools" || { debian python3-venv && python3 -m venv "$tools"; } || need 'python3 with venv (Debian: python3-venv)'
    python -m pip install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" "$tools/"
  fi
  for target in {x86_64,aarch64}-unknown-linux-{gnu,musl}; do
    [[ -d $(rustc --print sysroot)/lib/rustlib/$target/lib ]] || missing+=("$target")
  done
  ((!${#missing[@]})) || rustup target add "${missing[@]}" || need "Rust's library for ${missing[*]} (rustup target add)"
}

compile_for() { # TARGET: Cargo compiles and links with zig, which brings the C library of every target. Sets $cc to that compiler
  local target=$1 name=${1//-/_} zig
  cc=$scratch/cc-$target
  # 2.17 is what manylinux2014 promises. cargo-zigbuild knows what rustc says to a linker and zig does not understand. It and maturin
  # could call zig by themselves, but each with a compiler of another name, for which Cargo would compile everything again.
  # These variables spare it asking zig for each file that is compiled.
  zig=$(python -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
  cat >"$cc.new" <<END
#!/bin/sh
export CARGO_ZIGBUILD_ZIG_COMMAND='$zig' CARGO_ZIGBUILD_ZIG_COMMAND_ARGS= CARGO_ZIGBUILD_ZIG_VERSION=$("$zig" version)
exec '$tools/bin/cargo-zigbuild' zig cc -- -g -fno-sanitize=all -target $(sed 's/-unknown//; s/-gnu$/-gnu.2.17/' <<<"$target") "\$@"
END
  chmod +x "$cc.new"
  mv "$cc.new" "$cc"
  export "CC_$name=$cc" "CARGO_TARGET_${name^^}_LINKER=$cc"
  # Shared libraries for musl use the C library of the machine.
  [[ $target != *-musl ]] || export "CARGO_TARGET_${name^^}_RUSTFLAGS=-C target-feature=-crt-static"
}
