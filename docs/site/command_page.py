"""The reference of the command, from its own help."""

from __future__ import annotations

import pathlib
import re
import subprocess
import textwrap

# An argument or option, and what is behind it on its line.
ITEM = re.compile(r"^ {2,6}([-<\[]\S*(?: \S+)*)(?: {2,}(.*))?$")


def asked(program: pathlib.Path, words: list[str]) -> str:
    # Without the variables of who builds the site, which the help would show.
    return subprocess.run([program, *words, "--help-all"], env={}, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading; those before the first one have the name ""."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for line in text.splitlines():
        heading = re.fullmatch(r"([A-Z][\w ]*):(?: (.*))?", line)
        if heading and (heading[1] == "Usage") == bool(heading[2]):
            name = heading[1]
            found[name] = [heading[2]] if heading[2] else []
        else:
            found[name].append(line)
    return found


def escaped(text: str) -> str:
    """Prose of the help, in which what looks like code is code."""
    return re.sub(r"(?<![\w`/])(--?[a-z][\w-]*|\$?[A-Z]+_[A-Z_]+(?:/[\w.-]*\w)?|[a-z]+_\w+|\{[\w|]+\}[\w{}]*|~?/[\w./-]*\w)(?![`\w])", r"`\1`", text).replace("<", "&lt;")


def items(lines: list[str], words: list[str]) -> list[str]:
    """Arguments and options as a list, each with an anchor."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if item := ITEM.match(line):
            found.append((item[1], [item[2]] if item[2] else []))
        elif line.strip() and found:
            found[-1][1].append(line.strip())
    made = []
    for head, about in found:
        (name, *_) = re.findall(r"--([\w-]+)", head) or re.findall(r"\w+", head)
        text = re.sub(r"\[env: (\w+)=?\]", r"(variable \1)", " ".join(about))
        made.append(f'- <span id="{"-".join([*words, name])}"></span>`{head}`: {escaped(text)}')
    return made


def exit_codes(lines: list[str]) -> list[str]:
    codes: list[tuple[str, str]] = []
    for line in lines:
        if code := re.match(r" +(\d+)  (.*)", line):
            codes.append((code[1], code[2]))
        elif line.strip():
            codes[-1] = codes[-1][0], f"{codes[-1][1]} {line.strip()}"
    return [f'- <span id="exit-code-{code}"></span>`{code}`: {escaped(text)}' for code, text in codes]


def page(program: pathlib.Path) -> str:
    whole = sections(asked(program, []))
    made = ["# The command", "What `zklock --help-all` and `zklock COMMAND --help-all` say. With `--help`, they say what is needed first. For man pages, see `man zklock` and `man zklock-run`."]

    def commands(of: dict[str, list[str]]) -> list[str]:
        return re.findall(r"^  ([a-z-]+)  ", "\n".join(of.get("Commands", [])), re.MULTILINE)

    def explain(words: list[str]) -> None:
        own = sections(asked(program, words))
        made.append(f"{'#' * (len(words) + 1)} zklock {' '.join(words)} {{ #{'-'.join(words)} }}")
        usage = textwrap.fill(own["Usage"][0].replace("|", " | "), 76, subsequent_indent="    ")
        made.append(f"```text\n{usage}\n```")
        made.append(escaped("\n".join(own[""])).strip())
        for heading in "Arguments", "Options":
            if listed := [item for item in items(own.get(heading, []), words) if "--help" not in item]:
                made.extend([f"**{heading}**", "\n".join(listed)])
        for name in commands(own):
            explain([*words, name])

    for name in commands(whole):
        explain([name])
    made += ["## Connection", "These options are for every command that connects, before or behind its name.", "\n".join(items(whole["Connection"], []))]
    made += ["## Configuration file", escaped("\n".join(line.strip() for line in whole["Configuration file"])).strip()]
    made += ["## Exit codes", "\n".join(exit_codes(whole["Exit codes"]))]
    return "\n\n".join(made) + "\n"
