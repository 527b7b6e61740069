"""Checks the bills of materials, and that each part of them has its licence: `check.py FOLDER VERSION`."""

import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

folder, version = pathlib.Path(sys.argv[1]), sys.argv[2]
notices = (folder / "THIRD-PARTY.txt").read_text(encoding="utf-8").splitlines()
for crate in ("zklock-ffi", "zklock-py", "zklock-cli"):
    text = (folder / f"{crate}.cdx.json").read_text(encoding="utf-8")
    if wrong := JsonStrictValidator(SchemaVersion.V1_5).validate_str(text):
        sys.exit(f"{crate}: {wrong}")
    bill = json.loads(text)
    described = bill["metadata"]["component"]
    assert (described["name"], described["version"]) == (crate, version), described
    parts = {it["name"]: it for it in bill["components"]}
    # The client library, what stands in for crates below it, and the cryptography in C. The wheel has the command, too.
    wanted = {"zookeeper-client", "zklock", "zklock-frames", "async-net", "futures-rustls", "aws-lc-sys"}
    wanted |= {"clap", "zklock-cli"} if crate == "zklock-py" else set()
    missing = wanted - set(parts)
    assert not missing, f"{crate}: without {missing}"
    for it in bill["components"]:
        named = f"{it['name']} {it['version']} ("
        assert any(line.startswith(named) for line in notices), f"{crate}: THIRD-PARTY.txt is without {named[:-2]}"
    print(f"{crate}: {len(bill['components'])} parts")
