# shellcheck shell=bash disable=SC2154
# The part of tests/c/packaging that looks at what install.sh does to a system.

uninstalled() { # files that install.sh did not install stay
  local at=$work/uninstalled install=$repo/zklock-ffi/install.sh
  mkdir -p "$at/lib/pkgconfig" "$at/share"
  touch "$at/lib/libother.so" "$at/lib/pkgconfig/other.pc"
  (cd "$at" && find . | sort) >"$work/before.txt"
  for _ in 1 2; do "$install" "$at" "${options[@]}" >"$work/output" 2>&1 || fail "$(tail -n 5 "$work/output")"; done
  [[ -e $at/lib/libzklock.so && -e $at/share/zklock/installed ]] || fail "nothing was installed"
  touch "$at/include/zklock/mine.hpp"
  run "$work/output" 0 "$install" --uninstall "$at"
  is "what is left" "$(cd "$at" && find . | sort | diff "$work/before.txt" - | grep '^[<>]' || true)" \
    "> ./include"$'\n'"> ./include/zklock"$'\n'"> ./include/zklock/mine.hpp"
  run "$work/output" 1 "$install" --uninstall "$at"
  has "$work/output" 'installed nothing there'
  # A list that somebody has changed removes nothing outside.
  mkdir -p "$at/share/zklock"
  echo '../before.txt' >"$at/share/zklock/installed"
  run "$work/output" 1 "$install" --uninstall "$at"
  [[ -e $work/before.txt ]] || fail "a file outside of PREFIX was removed"
  run "$work/output" 2 "$install" --uninstall "$at" --no-tls
}

the_loader_is_told() { # or install.sh says what to do. A script stands in for ldconfig
  local at=$work/loader install=$repo/zklock-ffi/install.sh
  mkdir -p "$at/lib"
  printf '#!/bin/sh\n[ "${1:-}" = -v ] && echo "%s: (from x:1)" || echo called >>"%s"\n' "$at/lib" "$work/called" \
    >"$work/ldconfig"
  chmod +x "$work/ldconfig"
  LDCONFIG=$work/ldconfig "$install" "$at" "${options[@]}" >"$work/output" 2>&1 || fail "$(tail -n 5 "$work/output")"
  if [[ $(id -u) == 0 ]]; then
    is "what became of ldconfig" "$(cat "$work/called")" called
  else
    has "$work/output" 'root must call'
  fi
  rm -f "$work/called"
  LDCONFIG=$work/ldconfig DESTDIR=$work/staged run "$work/output" 0 "$install" "$at" "${options[@]}"
  [[ ! -e $work/called ]] || fail "with DESTDIR it is not for this system"
  LDCONFIG=$work/ldconfig run "$work/output" 0 "$install" --uninstall "$at"
  [[ $(id -u) != 0 || -e $work/called ]] || fail "ldconfig was not called after the removal"
  # A folder where it does not look.
  "$install" "$work/elsewhere" "${options[@]}" >"$work/output" 2>&1 || fail "$(tail -n 5 "$work/output")"
  has "$work/output" "LD_LIBRARY_PATH=$work/elsewhere/lib"
  has "$work/output" "echo $work/elsewhere/lib >/etc/ld.so.conf.d/zklock.conf && ldconfig"
}

in_a_fresh_usr_local() { # README's commands suffice: in a file system view of its own
  mkdir -p "$work/etc/upper" "$work/etc/work"
  cat >"$work/fresh.sh" <<'END'
set -eu
mount -t tmpfs zklock /usr/local
mkdir -p /usr/local/lib
mount -t overlay zklock -o lowerdir=/etc,upperdir="$1/etc/upper",workdir="$1/etc/work" /etc
touch /etc/zklock-may-write
END
  if ! unshare --mount sh "$work/fresh.sh" "$work" 2>"$work/output"; then
    echo "skipped in_a_fresh_usr_local: no mounts of its own: $(head -n 1 "$work/output")"
    return
  fi
  rm -rf "$work/etc" && mkdir -p "$work/etc/upper" "$work/etc/work"
  cat >>"$work/fresh.sh" <<'END'
shift
source=$1 repo=$2 hosts=$3
shift 3
"$repo/zklock-ffi/install.sh" /usr/local "$@"
cc "$source" -o /usr/local/program $(pkg-config --cflags --libs zklock)
/usr/local/program "$hosts"
"$repo/zklock-ffi/install.sh" --uninstall /usr/local
! /usr/local/program "$hosts" || exit 1
END
  unshare --mount sh "$work/fresh.sh" "$work" "$work/examples/minimal.c" "$repo" "$hosts" "${options[@]}" \
    >"$work/output" 2>&1 || fail "$(tail -n 5 "$work/output")"
  has "$work/output" 'working under the lock'
  has "$work/output" 'libzklock.so.[0-9.]+: cannot open shared object'
}

built_first_then_installed() { # by a user who may not write there, and then by root, who has no Rust
  local at=$work/not-ours install=$repo/zklock-ffi/install.sh user=()
  # Without its capabilities, root has the rights of a user.
  [[ $(id -u) != 0 ]] || user=(setpriv --bounding-set=-all --inh-caps=-all)
  install -d "$at/lib"
  chmod 555 "$at"
  rm -rf "$repo/target/built"
  run "$work/output" 1 "$install" --built "$at"
  has "$work/output" "nothing is built: run .*install.sh $at first"
  run "$work/output" 1 "${user[@]}" "$install" "$at" "${options[@]}"
  is "the last line" "$(tail -n 1 "$work/output")" "  sudo $install --built $at"
  is "what is there" "$(cd "$at" && find . -mindepth 1)" ./lib
  DESTDIR=$at run "$work/output" 1 "${user[@]}" "$install" /usr "${options[@]}"
  is "the last line" "$(tail -n 1 "$work/output")" "  sudo env DESTDIR=$at $install --built /usr"
  chmod 755 "$at"
  (umask 077 && CARGO=no-such-cargo SUDO_USER=somebody run "$work/output" 0 "$install" --built "$at")
  has "$work/output" "LD_LIBRARY_PATH=$at/lib"
  diff -r --no-dereference --exclude installed "$prefix" "$at" || fail "something else was installed"
  is "rights that differ" "$(cd "$prefix" && find . -mindepth 1 -printf '%m %P\n' | sort | diff - \
    <(cd "$at" && find . -mindepth 1 -printf '%m %P\n' | sort))" ''
  run "$work/output" 0 "$install" --uninstall "$at"
  is "what is left" "$(cd "$at" && find . -mindepth 1)" ./lib
  if [[ $(id -u) == 0 ]]; then
    SUDO_USER=somebody run "$work/output" 1 "$install" "$at" "${options[@]}"
    has "$work/output" 'without sudo first, to build as somebody'
  fi
}

for_another_machine() { # minutes, because everything is compiled again
  local target=aarch64-unknown-linux-gnu
  run "$work/output" 2 "$repo/zklock-ffi/install.sh" "$work/cross" --target
  LD=no-such-ld run "$work/output" 1 "$repo/zklock-ffi/install.sh" "$work/cross" --target $target
  has "$work/output" 'no-such-ld is missing: install the GNU binutils'
  if [[ ! ${ZKLOCK_LONG:-} ]]; then
    echo "skipped the rest of for_another_machine: it takes minutes, set ZKLOCK_LONG"
    return
  fi
  if ! command -v aarch64-linux-gnu-gcc >/dev/null || ! rustup target add $target >"$work/output" 2>&1; then
    echo "skipped the rest of for_another_machine: gcc-aarch64-linux-gnu or Rust's library for $target is missing"
    return
  fi
  "$repo/zklock-ffi/install.sh" "$work/cross" --no-tls --target $target >"$work/output" 2>&1 ||
    fail "install.sh: $(tail -n 5 "$work/output")"
  aarch64-linux-gnu-readelf -h "$work/cross/lib/libzklock.so" | grep -q AArch64 || fail "it is for this machine"
  aarch64-linux-gnu-nm -g --defined-only "$work/cross/lib/libzklock.a" | awk 'NF == 3 { print $3 }' | sort |
    diff "$work/functions" - || fail "the static library's names are not those of the header"
  aarch64-linux-gnu-gcc "$work/examples/minimal.c" -o "$work/cross/shared" -I"$work/cross/include" \
    -L"$work/cross/lib" -lzklock
  aarch64-linux-gnu-gcc "$work/examples/minimal.c" -o "$work/cross/static" -I"$work/cross/include" \
    -L"$work/cross/lib" -l:libzklock.a -lm -lpthread -ldl
}

threads_are_not_suspected() { # with zklock's suppressions ThreadSanitizer reports nothing about the library
  if ! echo 'int main(void) { return 0; }' | cc -fsanitize=thread -xc - -o "$work/tsan" 2>/dev/null ||
    ! "$work/tsan" 2>/dev/null; then
    echo "skipped threads_are_not_suspected: programs with -fsanitize=thread do not run here"
    return
  fi
  # shellcheck disable=SC2046
  cc "${strict[@]}" -g -fsanitize=thread -pthread "$here/suspect.c" -o "$work/suspect" $(pkg --cflags zklock) \
    $(flags shared) -Wl,-rpath,"$prefix/lib"
  local supp=$prefix/share/zklock/tsan.supp
  TSAN_OPTIONS=exitcode=66 run "$work/output" 66 "$work/suspect" "$hosts"
  TSAN_OPTIONS=exitcode=66:suppressions=$supp run "$work/output" 0 "$work/suspect" "$hosts"
  is "what it says" "$(tail -n 1 "$work/output")" done
  # A race of the program itself is still reported.
  TSAN_OPTIONS=exitcode=66:suppressions=$supp run "$work/output" 66 "$work/suspect" "$hosts" races
  has "$work/output" 'data race .*suspect.c'
}

nothing_is_lost() { # with zklock's suppressions valgrind's leak check reports nothing about the library
  # shellcheck disable=SC2046
  cc "${strict[@]}" -g -pthread "$here/suspect.c" -o "$work/loses" $(pkg --cflags zklock) $(flags shared) -Wl,-rpath,"$prefix/lib"
  local check=(valgrind --leak-check=full --error-exitcode=66) supp=--suppressions=$prefix/share/zklock/valgrind.supp
  run "$work/output" 66 "${check[@]}" "$work/loses" "$hosts"
  has "$work/output" 'possibly lost'
  run "$work/output" 0 "${check[@]}" "$supp" "$work/loses" "$hosts"
  has "$work/output" '^done$'
  # What the program itself loses is still reported.
  run "$work/output" 66 "${check[@]}" "$supp" "$work/loses" "$hosts" '' loses
  has "$work/output" 'definitely lost: 7 bytes'
}
