#!/bin/sh
# Builds libzklock and installs it below PREFIX.
#
#   zklock-ffi/install.sh PREFIX [--no-tls] [--libdir DIR] [--features LIST]
#
#   --no-tls         without encrypted connections: a smaller library
#   --libdir DIR     where libraries go below PREFIX, if not lib: lib64, lib/x86_64-linux-gnu
#   --features LIST  more features of the crate, as cargo takes them
#
# DESTDIR is put before PREFIX where files are written, and stands in none of them. CARGO, CARGO_TARGET_DIR, LD, NM,
# OBJCOPY, STRIP and AR are honoured. What is installed may be moved as a whole.
set -eu
export LC_ALL=C

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

usage() {
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p;}' "$0" >&2
  exit 2
}

absolute() {
  case $1 in
    /*) echo "$1" ;;
    *) echo "$(pwd)/$1" ;;
  esac
}

prefix='' libdir=lib features='' default_features=''
while [ $# -gt 0 ]; do
  case $1 in
    --no-tls) default_features=--no-default-features ;;
    --libdir | --features)
      [ $# -gt 1 ] || usage
      if [ "$1" = --libdir ]; then libdir=$2; else features=$2; fi
      shift
      ;;
    -*) usage ;;
    *)
      [ -z "$prefix" ] && [ -n "$1" ] || usage
      prefix=$(absolute "$1")
      ;;
  esac
  shift
done
[ -n "$prefix" ] || usage
case /$libdir/ in
  //* | */../* | */./*) fail "--libdir is a folder below PREFIX, such as lib64: not $libdir" ;;
esac
prefix=${prefix%/}
libdir=${libdir%/}
destination=${DESTDIR:+$(absolute "$DESTDIR")}$prefix

cargo=${CARGO:-cargo} ld=${LD:-ld} nm=${NM:-nm} objcopy=${OBJCOPY:-objcopy} strip=${STRIP:-strip} ar=${AR:-ar}
command -v "$cargo" >/dev/null || fail "cargo is missing: Rust 1.85 or later is needed, see https://rustup.rs"
for tool in "$ld" "$nm" "$objcopy" "$strip" "$ar"; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install the GNU binutils (Debian: binutils)"
done
command -v install >/dev/null || fail "install is missing: install the GNU coreutils"

[ -z "${CARGO_TARGET_DIR:-}" ] || CARGO_TARGET_DIR=$(absolute "$CARGO_TARGET_DIR")
[ -z "${CARGO_TARGET_DIR:-}" ] || export CARGO_TARGET_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# There cargo finds the toolchain and the settings of this repository.
cd "$here/.."

# Cargo is asked where it put them, since that may be set in many places.
# shellcheck disable=SC2086
"$cargo" build --release --locked -p zklock-ffi $default_features ${features:+--features "$features"} \
  --message-format=json-render-diagnostics >"$work/messages"
built() {
  path=$(sed -n 's|.*"\(/[^"]*/libzklock\.'"$1"'\)".*|\1|p' "$work/messages" | tail -n 1)
  [ -f "$path" ] || fail "cargo built no libzklock.$1: a target for GNU/Linux is needed"
  echo "$path"
}
shared=$(built so)
static=$(built a)
version=$("$cargo" pkgid --locked -p zklock-ffi | sed 's/.*[#@]//')
number=${version%%[-+]*} # 1.2.3 of 1.2.3-rc.1
[ -n "$number" ] || fail "cargo does not tell the version"
major=${number%%.*}

# Names of inner functions are dropped too: whoever has to debug the library builds it.
"$strip" --strip-unneeded -o "$work/shared" "$shared"

# As cargo makes it the archive has Rust's standard library in full view, and clashes with that of any other Rust
# archive. So: one object, in which our own names alone are global. Groups are dissolved, for the linker would keep one
# of two that have the same name, and throw away what panics need to be caught. Bitcode that Rust's standard library
# brings along goes, since binutils with a plugin for it would see nothing else.
roots=$("$nm" --defined-only --extern-only "$static" 2>/dev/null | sed -n 's/.* T \(zklock_[a-z0-9_]*\)$/-u \1/p')
[ -n "$roots" ] || fail "$static exports nothing"
# shellcheck disable=SC2086
"$ld" -r --force-group-allocation $roots -o "$work/all.o" "$static"
"$objcopy" --wildcard --keep-global-symbol='zklock_*' --strip-unneeded --remove-section=.llvmbc \
  --remove-section=.llvmcmd "$work/all.o" "$work/zklock.o"
"$ar" rcsD "$work/static" "$work/zklock.o"

up=$(echo "$libdir" | sed 's|[^/][^/]*|..|g')
from_template() {
  sed -e "s|@VERSION@|$number|g" -e "s|@MAJOR@|$major|g" -e "s|@LIBDIR@|$libdir|g" -e "s|@UP@|$up|g" "$1" >"$work/made"
  install -m 644 "$work/made" "$2"
}

lib=$destination/$libdir
install -d "$destination/include/zklock" "$lib/pkgconfig" "$lib/cmake/zklock"
install -m 644 include/zklock.h include/zklock.hpp "$destination/include"
install -m 644 include/zklock/*.hpp "$destination/include/zklock"
install -m 755 "$work/shared" "$lib/libzklock.so.$number"
ln -sfn "libzklock.so.$number" "$lib/libzklock.so.$major"
ln -sfn "libzklock.so.$major" "$lib/libzklock.so"
install -m 644 "$work/static" "$lib/libzklock.a"
from_template "$here/zklock.pc.in" "$lib/pkgconfig/zklock.pc"
from_template "$here/cmake/zklock-config.cmake.in" "$lib/cmake/zklock/zklock-config.cmake"
from_template "$here/cmake/zklock-config-version.cmake.in" "$lib/cmake/zklock/zklock-config-version.cmake"
echo "zklock $version is installed in $destination"
