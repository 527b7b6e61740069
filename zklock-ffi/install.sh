#!/bin/sh
# Builds libzklock and installs it below PREFIX.
#
#   zklock-ffi/install.sh PREFIX [--command] [--no-tls] [--libdir DIR] [--features LIST] [--target TRIPLE]
#   zklock-ffi/install.sh --built PREFIX
#   zklock-ffi/install.sh --uninstall PREFIX
#
# Run it as the user who has Rust, without sudo. If you may not write to PREFIX, it builds, and its last line says what to
# run as root.
#
#   --command        also install the command zklock, with its man pages, and completions for bash, zsh and fish
#   --no-tls         build a smaller library, without encrypted connections
#   --libdir DIR     the folder for libraries below PREFIX, such as lib64 or lib/x86_64-linux-gnu; lib by default
#   --features LIST  additional features of the crate, in cargo's format
#   --target TRIPLE  build for another machine, such as aarch64-unknown-linux-gnu. This needs Rust's standard library for
#                    it (rustup target add TRIPLE), and a GNU toolchain (Debian: gcc-aarch64-linux-gnu)
#   --built          install what was built for a PREFIX to which its user may not write. This builds nothing
#   --uninstall      remove what this script installed below PREFIX, and nothing else. This builds nothing
#
# Files are written below DESTDIR/PREFIX, but no file contains DESTDIR. The script respects CARGO, CARGO_TARGET_DIR, LD,
# NM, OBJCOPY, STRIP (: keeps all symbols), AR and LDCONFIG, as well as CC, which may be several words (ccache gcc), and
# LDFLAGS, with which the shared library is linked. You may move the installed files as a whole.
#
# So that programs find the shared library, the script calls ldconfig if it runs as root and PREFIX's libraries are where
# ldconfig looks, as in /usr/local. Otherwise its last lines say what to do.
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

prefix='' libdir='' features='' default_features='' target='' command='' built='' uninstall=''
while [ $# -gt 0 ]; do
  case $1 in
    --no-tls) default_features=--no-default-features ;;
    --command) command=yes ;;
    --built) built=yes ;;
    --uninstall) uninstall=yes ;;
    --libdir | --features | --target)
      [ $# -gt 1 ] && [ -n "$2" ] || usage
      case $1 in
        --libdir) libdir=$2 ;;
        --features) features=$2 ;;
        *) target=$2 ;;
      esac
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
case $built$uninstall in
  '') ;;
  # The other options say what to build.
  yes) [ -z "$default_features$libdir$features$target$command" ] || usage ;;
  *) usage ;;
esac
libdir=${libdir:-lib}
case /$libdir/ in
  //* | */../* | */./* | *[!A-Za-z0-9._/-]*) fail "--libdir is a folder below PREFIX, such as lib64: not $libdir" ;;
esac
prefix=${prefix%/}
libdir=${libdir%/}
destination=${DESTDIR:+$(absolute "$DESTDIR")}$prefix
# What is installed, by its place below PREFIX. Folders that were not there before end with a slash.
list=share/zklock/installed
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# What waits for --built: always here, because root does not have the user's environment.
kept=${here%/*}/target/built

PATH=$PATH:/usr/sbin:/sbin
ldconfig=${LDCONFIG:-ldconfig}
# Whether the loader looks into this folder, and so ldconfig does.
is_searched() {
  [ -d "$1" ] || return 1
  real=$(cd "$1" && pwd -P)
  "$ldconfig" -v -N -X 2>/dev/null | sed -n 's|^\(/[^:]*\):.*|\1|p' | while IFS= read -r folder; do
    [ ! -d "$folder" ] || (cd "$folder" && pwd -P)
  done | grep -qxF "$real"
}
may_call_ldconfig() { [ -z "${DESTDIR:-}" ] && [ "$(id -u)" = 0 ]; }

if [ -n "$uninstall" ]; then
  [ -f "$destination/$list" ] || fail "$destination/$list is missing: this script has installed nothing there"
  ! grep -Eq '^/|(^|/)\.\.(/|$)' "$destination/$list" || fail "$destination/$list names files outside of PREFIX"
  folder=$destination/$(sed -n 's|/libzklock\.a$||p' "$destination/$list" | head -n 1)
  searched=''
  if may_call_ldconfig && is_searched "$folder"; then searched=yes; fi
  # Files first, then the folders from the inside to the outside; those in which something else lies stay.
  files=$(cat "$destination/$list")
  echo "$files" | grep -v '/$' | while IFS= read -r file; do rm -f "$destination/$file"; done
  echo "$files" | grep '/$' | sort -r | while read -r folder; do
    rmdir "$destination/$folder" 2>/dev/null || true
  done
  [ -z "$searched" ] || "$ldconfig"
  echo "zklock is removed from $destination"
  exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

folders_of() { (cd "$1" && find . -mindepth 1 -type d | sed 's|^\./||' | sort); }

writable() { # whether this user may write to all the folders below PREFIX that a tree has, or make them
  folders_of "$1" | while IFS= read -r folder; do
    at=$destination/$folder
    while [ -n "$at" ] && [ ! -e "$at" ]; do at=${at%/*}; done
    [ -w "${at:-/}" ] || exit 1
  done
}

install_tree() { # copies a tree to PREFIX, and notes what it brings there
  install -d "$destination"
  folders_of "$1" | while IFS= read -r folder; do
    [ ! -d "$destination/$folder" ] || continue
    install -d "$destination/$folder"
    echo "$folder/"
  done >"$work/list"
  (cd "$1" && find . ! -type d) | sed 's|^\./||' | while IFS= read -r file; do
    # A new file each time, because programs may have the old one mapped.
    cp -P --preserve=mode --remove-destination "$1/$file" "$destination/$file"
    echo "$file"
  done >>"$work/list"
  # What an earlier installation brought is removed with this one.
  [ ! -f "$destination/$list" ] || cat "$destination/$list" >>"$work/list"
  echo "$list" >>"$work/list"
  sort -u "$work/list" >"$work/sorted"
  install -m 644 "$work/sorted" "$destination/$list"
  echo "zklock is installed in $destination"

  [ -z "${DESTDIR:-}" ] && [ -z "$cross" ] || return 0
  lib=$prefix/$(sed -n 's|/libzklock\.a$||p' "$work/list" | head -n 1)
  if ! is_searched "$lib"; then
    echo "The loader does not search $lib. So link programs with -Wl,-rpath,$lib, or start them with"
    echo "  LD_LIBRARY_PATH=$lib"
    echo "or let it search there, as root:"
    echo "  echo $lib >/etc/ld.so.conf.d/zklock.conf && ldconfig"
    echo "If pkg-config does not find it, call it with"
    echo "  PKG_CONFIG_PATH=$lib/pkgconfig"
  elif may_call_ldconfig; then
    "$ldconfig"
  else
    echo "Before programs find it, root must call"
    echo "  ldconfig"
  fi
}

cross=''
if [ -n "$built" ]; then
  [ -d "$kept" ] || fail "nothing is built: run $0 $prefix first, as the user who has Rust"
  install_tree "$kept"
  exit
fi
# Under sudo there is no Rust of the user's, and what cargo writes would belong to root.
[ "$(id -u)" != 0 ] || [ "${SUDO_USER:-root}" = root ] ||
  fail "run it without sudo first, to build as $SUDO_USER: it then prints what to run with sudo"
[ -z "$command" ] || [ -z "$target" ] ||
  fail "--command cannot be used with --target: the command prints its man pages itself, and cannot run here"

if [ -n "$target" ]; then
  # The GNU tools leave out who made the machine: aarch64-linux-gnu-ld.
  name=$(echo "$target" | sed 's/-unknown-/-/;s/-pc-/-/')
  [ "$(uname -m)-linux-gnu" = "$name" ] || cross=$name-
fi
cargo=${CARGO:-cargo} ld=${LD:-${cross}ld} nm=${NM:-${cross}nm} objcopy=${OBJCOPY:-${cross}objcopy}
strip=${STRIP:-${cross}strip} ar=${AR:-${cross}ar} cc=${CC:-${cross:+${cross}g}cc}
command -v "$cargo" >/dev/null || fail "cargo is missing: Rust 1.85 or later is needed, see https://rustup.rs"
for tool in "$ld" "$nm" "$objcopy" "$strip" "$ar"; do
  command -v "$tool" >/dev/null ||
    fail "$tool is missing: install the GNU binutils (Debian: binutils${cross:+-${cross%-}})"
done
command -v awk >/dev/null || fail "awk is missing: install mawk or gawk"
command -v "${cc%% *}" >/dev/null || fail "${cc%% *} is missing: install a C compiler (Debian: gcc${cross:+-${cross%-}})"
command -v install >/dev/null || fail "install is missing: install the GNU coreutils"
if [ -n "$cross" ]; then
  # Cargo would link for another machine with this one's cc.
  linker=CARGO_TARGET_$(echo "$target" | tr 'a-z-' 'A-Z_')_LINKER
  eval "known=\${$linker:-}"
  # shellcheck disable=SC2154
  if [ -z "$known" ]; then
    command -v "${cross}gcc" >/dev/null || fail "${cross}gcc is missing: install it (Debian: gcc-${cross%-}), or set $linker"
    export "$linker=${cross}gcc"
  fi
fi

[ -z "${CARGO_TARGET_DIR:-}" ] || CARGO_TARGET_DIR=$(absolute "$CARGO_TARGET_DIR")
[ -z "${CARGO_TARGET_DIR:-}" ] || export CARGO_TARGET_DIR
# There cargo finds the toolchain and the settings of this repository.
cd "$here/.."

# Cargo is asked where it put them, since that may be set in many places.
# shellcheck disable=SC2086
"$cargo" build --release --locked -p zklock-ffi ${command:+-p zklock-cli} $default_features ${features:+--features "$features"} \
  ${target:+--target "$target"} --message-format=json-render-diagnostics >"$work/messages"
built() {
  path=$(sed -n 's|.*"\(/[^"]*/libzklock\.'"$1"'\)".*|\1|p' "$work/messages" | tail -n 1)
  [ -f "$path" ] || fail "cargo built no libzklock.$1: a target for GNU/Linux is needed"
  echo "$path"
}
static=$(built a)
version=$("$cargo" pkgid --locked -p zklock-ffi | sed 's/.*[#@]//')
number=${version%%[-+]*} # 1.2.3 of 1.2.3-rc.1
[ -n "$number" ] || fail "cargo does not tell the version"
major=${number%%.*}
# What the SONAME ends with. Before 1.0 a minor version may change the ABI: see "Versions" in zklock.h.
abi=$major
[ "$major" != 0 ] || abi=${number%.*}

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

# The shared library is linked from the same archive, and not taken from Cargo: GNU ld takes but one version script, and
# rustc has its own. Programs use no name of it in another version than that with which they were linked, also where two
# versions of the library are loaded. It stays loaded, for its threads outlive a dlclose.
sed "s/@ABI@/$abi/" "$here/zklock.map.in" >"$work/map"
# LLVM's linker exports the names that it makes for the ends of a section, whatever the version script says, but not hidden ones.
"$nm" --undefined-only "$static" 2>/dev/null | sed -n 's/.* U \(__st[artop]*_.*\)/.hidden \1/p' | sort -u >"$work/hidden.s"
# zig takes -u for the linker alone.
# shellcheck disable=SC2086,SC2046
$cc -shared ${LDFLAGS:-} $(echo "$roots" | sed 's/^-u /-Wl,-u,/') -o "$work/linked" \
  "$work/hidden.s" "$static" -Wl,--gc-sections,--as-needed,--no-undefined,-O1 \
  -Wl,-z,relro,-z,now,-z,nodelete,-z,noexecstack "-Wl,-soname,libzklock.so.$abi,--version-script=$work/map" \
  -lgcc_s -lutil -lrt -lpthread -lm -ldl
# Names of inner functions are dropped too: to debug the library, build it.
"$strip" --strip-unneeded "$work/linked"

tree=$work/tree
up=$(echo "$libdir" | sed 's|[^/][^/]*|..|g')
file() { # MODE FROM TO: TO is its place below PREFIX
  install -D -m "$1" "$2" "$tree/$3"
}
from_template() {
  sed -e "s|@VERSION@|$number|g" -e "s|@MAJOR@|$major|g" -e "s|@ABI@|$abi|g" -e "s|@LIBDIR@|$libdir|g" -e "s|@UP@|$up|g" "$1" >"$work/made"
  file 644 "$work/made" "$2"
}

for header in include/zklock.h include/zklock.hpp include/zklock/*.hpp; do file 644 "$header" "$header"; done
file 755 "$work/linked" "$libdir/libzklock.so.$number"
ln -s "libzklock.so.$number" "$tree/$libdir/libzklock.so.$abi"
ln -s "libzklock.so.$abi" "$tree/$libdir/libzklock.so"
file 644 "$work/static" "$libdir/libzklock.a"
from_template "$here/zklock.pc.in" "$libdir/pkgconfig/zklock.pc"
from_template "$here/cmake/zklock-config.cmake.in" "$libdir/cmake/zklock/zklock-config.cmake"
from_template "$here/cmake/zklock-config-version.cmake.in" "$libdir/cmake/zklock/zklock-config-version.cmake"
mkdir "$work/man3"
awk -v folder="$work/man3" -v version="$number" -f "$here/man.awk" include/zklock.h
for page in "$work"/man3/*; do file 644 "$page" "share/man/man3/${page##*/}"; done
for suppressions in tsan.supp valgrind.supp; do file 644 "$here/$suppressions" "${list%/*}/$suppressions"; done

if [ -n "$command" ]; then
  program=$(sed -n 's|.*"executable":"\(/[^"]*/zklock\)".*|\1|p' "$work/messages" | tail -n 1)
  [ -x "$program" ] || fail "cargo built no command zklock"
  file 755 "$program" bin/zklock
  "$strip" --strip-unneeded "$tree/bin/zklock"
  printed() { # TO WORD...: a file below PREFIX with what the command prints
    to=$1
    shift
    "$program" "$@" >"$work/made"
    file 644 "$work/made" "$to"
  }
  printed share/man/man1/zklock.1 man
  # The page names those of the subcommands.
  for name in $(sed -n 's/^zklock\\-\([a-z]*\)(1)$/\1/p' "$tree/share/man/man1/zklock.1"); do
    printed "share/man/man1/zklock-$name.1" man "$name"
  done
  printed share/bash-completion/completions/zklock completions bash
  printed share/zsh/site-functions/_zklock completions zsh
  printed share/fish/vendor_completions.d/zklock.fish completions fish
fi

if writable "$tree"; then
  install_tree "$tree"
else
  rm -rf "$kept"
  mkdir -p "${kept%/*}"
  mv "$tree" "$kept"
  echo "zklock $version is built, and you may not write to $destination. Install it there as root:" >&2
  echo "  sudo ${DESTDIR:+env DESTDIR=$DESTDIR }$0 --built $prefix" >&2
  exit 1
fi
