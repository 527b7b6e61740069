"""A hook of MkDocs. Pages link to files of the repository, which are not on the site: only the text of such a link stays there. And
rustdoc's words behind the language of an example are left out, without which MkDocs does not see that the example begins."""

from __future__ import annotations

import posixpath
import re

DEFINITION = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.MULTILINE)
EXAMPLE = re.compile(r"^(```\w+),\S+$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, page, config, files) -> str:
    here = posixpath.dirname(page.file.src_uri)

    def is_outside(target: str) -> bool:
        return "://" not in target and posixpath.normpath(posixpath.join(here, target)).startswith("../")

    markdown = EXAMPLE.sub(r"\1", markdown)
    outside = {name for name, target in DEFINITION.findall(markdown) if is_outside(target)}
    markdown = DEFINITION.sub(lambda link: "" if link[1] in outside else link[0], markdown)
    for name in outside:
        markdown = re.sub(rf"\[([^\]]*)\]\[{re.escape(name)}\]", r"\1", markdown)
        markdown = markdown.replace(f"[{name}]", name)
    return LINK.sub(lambda link: link[1] if is_outside(link[2]) else link[0], markdown)
