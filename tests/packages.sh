# Sourced by scripts that compile tests. One selection of packages for all of them, because with another one Cargo would compile
# the library and its dependencies once more, with other features. A build of programs names an example, too, for without one the
# features of what only tests need are left out. (What C and Python programs use is compiled as users get it: see quick_cargo.)
packages=(--locked -p zklock -p zklock-machine -p zklock-fork-page -p zklock-frames -p async-io -p async-net -p zklock-testkit -p zklock-cli
  -p zklock-tests -p zklock-simulation --features zklock/tls)
