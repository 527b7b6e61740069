# Sourced by scripts that install missing Debian packages, or say what to install.

need() { # what to install by hand, where this script may not
  echo "${0#"$PWD/"} needs $1" >&2
  exit 1
}

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; elif sudo -n true 2>/dev/null; then sudo "$@"; else return 1; fi
}

updated=
debian() { # installs Debian packages
  command -v apt-get >/dev/null || return 1
  [[ $updated ]] || alone as_root apt-get update -qq || return 1
  updated=yes
  alone as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

alone() { # runs apt-get, which fails if another one is running, as in another section
  flock 8
  "$@" 8>&-
} 8>>"${TMPDIR:-/tmp}/zklock-tests-$UID.apt"
