"""Prints the licences of all that the bills of materials list: `notices.py FOLDER-OF-BILLS FOLDER-OF-LICENSES`.

cargo-bundle-licenses finds the texts, also of crates for other systems. The bills say which of them are compiled in.
"""

import json
import pathlib
import sys

bills, licenses = map(pathlib.Path, sys.argv[1:])
NOT_FOUND = "NOT FOUND"
texts = {}
for file in licenses.glob("*.licenses.json"):
    for library in json.loads(file.read_text(encoding="utf-8"))["third_party_libraries"]:
        texts[library["package_name"], library["package_version"]] = library
listed = {
    (it["name"], it["version"]) for file in bills.glob("*.cdx.json") for it in json.loads(file.read_text(encoding="utf-8"))["components"]
}
apache = (licenses / "LICENSE-APACHE").read_text(encoding="utf-8")
by_text = {}
for name, version in sorted(listed):
    library = texts[name, version]
    found = {it["text"].strip() for it in library["licenses"] if it["text"].strip() != NOT_FOUND}
    # Some crates name this licence, whose text is the same for all, and bring no copy.
    if not found and any(it["license"] == "Apache-2.0" for it in library["licenses"]):
        found = {apache.strip()}
    if not found:
        sys.exit(f"no text of a licence for {name} {version}: {library['license']}")
    for text in sorted(found):
        by_text.setdefault(text, []).append(f"{name} {version} ({library['license']})")
print("What is compiled into libzklock, the wheel and the command `zklock`, and its licences.")
for text, crates in sorted(by_text.items(), key=lambda it: it[1]):
    print("", "=" * 100, *crates, "-" * 100, text, sep="\n")
