"""A hook of MkDocs: the reference of each language, the files of the repository that pages link to, and an index for programs."""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import c_page
import command_page
import cpp_page
import python_page
import rust_page
from mkdocs.structure.files import File, InclusionLevel
from repository import Repository

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = Repository(ROOT)
RUSTDOC = ROOT / "target/docs/rust/doc"
# rustdoc's words behind the language of an example. MkDocs would not see that the example begins.
EXAMPLE = re.compile(r"^(```\w+),\S+$", re.MULTILINE)

# Code within a line, and an option in it.
CODE = re.compile(r"(?<!</span>)<code>[^<]*</code>")
OPTION = re.compile(r"(?<![^\s>])--?[A-Za-z][\w-]{,24}")


def on_config(config):
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    config.site_name = f"zklock {version[1]}"
    return config


def on_files(files, config):
    c = c_page.page(ROOT)
    made = {
        "reference/c.md": c.markdown,
        "reference/cpp.md": cpp_page.page(ROOT, c.anchors),
        "reference/python.md": python_page.page(ROOT / "zklock-py/python"),
        "reference/command.md": command_page.page(pathlib.Path(os.environ.get("ZKLOCK_COMMAND", ROOT / "target/debug/zklock"))),
        "reference/rust.md": rust_page.page(RUSTDOC),
    }
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    pages = {page.src_uri: page.content_string for page in files.documentation_pages()}
    for uri, text in REPOSITORY.pages(pages).items():
        files.append(File.generated(config, uri, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown, page, config, files):
    return REPOSITORY.linked(page.file.src_uri, EXAMPLE.sub(r"\1", markdown))


def on_page_content(html, page, config, files):
    return CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def first_sentence(text):
    prose = next(part for part in re.split(r"\n\n+", text) if not re.match(r"#|```|[|<!-]", part))
    plain = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose).split())
    return re.match(r".*?(?:[.:](?= |$)|$)", plain)[0]


def on_nav(nav, config, files):
    """Writes the index for programs, in the order of the navigation: a line for each page."""
    lines = [f"# {config.site_name}", f"> {config.site_description}"]

    def add(items):
        for item in items:
            if item.is_section:
                lines.append(f"## {item.title}")
                add(item.children)
            elif item.is_page:
                lines.append(f"- [{item.title}]({item.file.url}): {first_sentence(item.file.content_string)}")

    add(nav.items)
    files.append(File.generated(config, "llms.txt", content="\n\n".join(lines).replace("\n\n- ", "\n- ") + "\n"))
    return nav


def on_post_build(config):
    if RUSTDOC.exists():
        shutil.copytree(RUSTDOC, pathlib.Path(config.site_dir, "reference/rust"), dirs_exist_ok=True)
