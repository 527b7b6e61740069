# shellcheck shell=bash
# Sourced after tests/debian.sh: buildah, with a store of its own that goes with the script.

command -v buildah >/dev/null || debian buildah || need 'buildah (Debian: buildah)'
store=$(mktemp -d)
# The driver that needs nothing of the machine.
buildah=(buildah --storage-driver vfs --root "$store/root" --runroot "$store/run")
end() {
  # A server in a container, which would go on.
  [[ ! ${SERVER_PID:-} ]] || { kill "$SERVER_PID" && wait "$SERVER_PID"; } || true
  "${buildah[@]}" rm --all >/dev/null
  rm -rf "$store"
}
trap end EXIT
