"""Files of the repository that pages link to, as pages of the site. Links lead to these, or to the reference."""

from __future__ import annotations

import pathlib
import posixpath
import re

FENCED = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s#]+)(#[^)\s]*)?", re.MULTILINE)
LANGUAGES = {".rs": "rust", ".c": "c", ".h": "c", ".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".yml": "yaml"}


class Repository:
    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def path_of(self, uri: str) -> str:
        """The file of the repository that a page of the site shows."""
        return uri.removeprefix("repository/").removesuffix(".txt.md") if uri.startswith("repository/") else f"docs/{uri}"

    def uri_of(self, path: str) -> str:
        """The page of the site for a file of the repository."""
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if path == "include/zklock.h":
            return "reference/c.md"
        if path == "include/zklock.hpp" or path.startswith("include/zklock/"):
            return "reference/cpp.md"
        return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.txt.md"

    def targets(self, path: str, text: str) -> set[str]:
        """The files of the repository that a page links to."""
        links = {link[2] for link in LINK.finditer(FENCED.sub("", text)) if ":" not in link[2]}
        found = {posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in links}
        return {file for file in found if not file.startswith("../") and (self.root / file).is_file()}

    def pages(self, known: dict[str, str]) -> dict[str, str]:
        """The additional pages that these need, by their place on the site."""
        made: dict[str, str] = {}
        work = [(self.path_of(uri), text) for uri, text in known.items()]
        while work:
            for file in self.targets(*work.pop()):
                uri = self.uri_of(file)
                if uri.startswith("repository/") and uri not in made:
                    made[uri] = self.shown(file)
                    if file.endswith(".md"):
                        work.append((file, made[uri]))
        return made

    def shown(self, path: str) -> str:
        text = (self.root / path).read_text()
        if path.endswith(".md"):
            return text
        language = LANGUAGES.get(posixpath.splitext(path)[1], "text")
        # Search is for words of the documentation.
        return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n~~~~~{language}\n{text}\n~~~~~\n"

    def linked(self, uri: str, text: str) -> str:
        """The text of a page, with links that lead to pages of the site. What is not there, such as a folder, stays text."""
        path = self.path_of(uri)

        def place(link: re.Match[str]) -> str:
            file = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[2]))
            if ":" in link[2] or file.startswith("../") or not (self.root / file).is_file():
                return link[0]
            return link[1] + posixpath.relpath(self.uri_of(file), posixpath.dirname(uri) or ".") + (link[3] or "")

        text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^):\s#]+)\)", lambda link: self.unless_folder(path, link), text)
        return LINK.sub(place, text)

    def unless_folder(self, path: str, link: re.Match[str]) -> str:
        is_folder = (self.root / posixpath.dirname(path) / link[2]).is_dir()
        return link[1] if is_folder else link[0]
