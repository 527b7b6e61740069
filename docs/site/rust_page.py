"""Leads to what rustdoc has made, if it has been run: `tests/docs/run rust`."""

from __future__ import annotations

import pathlib
import re

CRATE = "zklock"


def page(built: pathlib.Path) -> str:
    listed = built / CRATE / "all.html"
    if not listed.exists():
        return "# Rust\n\nThis copy of the site was built without the Rust documentation. `cargo doc -p zklock --open` builds it.\n"
    made = ["# Rust"]
    # MkDocs does not know the files of rustdoc, so these are no links of Markdown.
    made.append(f'The crate has <a href="rust/{CRATE}/index.html">pages of its own</a>, with a search. They explain:')
    for heading, items in re.findall(r'<h3 id="\w+">(.*?)</h3><ul class="all-items">(.*?)</ul>', listed.read_text()):
        made.append(f"## {heading}")
        links = re.findall(r'<a href="(.*?)">(.*?)</a>', items)
        made.append("\n".join(f'- <a href="rust/{CRATE}/{place}"><code>{name}</code></a>' for place, name in links))
    return "\n\n".join(made) + "\n"
