#!/usr/bin/env python3
"""Checks what the documents promise.

usage: tools/check_docs.py [--root DIR]

- every relative link in a Markdown file points at something that exists;
- every `make target`, `./hidane subcommand` and `tools/script` that is named exists;
- docs/life_of_a_*.md: every step names `src/room/file.cc` and a `Function`, and the file still
  holds that name.
"""
import argparse
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
MAKE = re.compile(r"`make ([a-z_-]+)`|^\s{4}make ([a-z_-]+)", re.M)
SCRIPT = re.compile(r"\b((?:tools|bench|tests)/[\w/.-]+\.(?:sh|py|txt))\b")
STEP = re.compile(r"`(src/[\w/.-]+\.(?:cc|h|rs))`(?:[^`\n]{0,12})`([\w:~]+)(?:\(\))?`")
LATER = {"sim", "doctor"}  # named as coming later, in the documents that say so


def documents(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others",
                             "--exclude-standard", "*.md"], capture_output=True, text=True,
                            check=True).stdout.split()
    return [root / name for name in listed if (root / name).exists()]


def make_targets(root):
    text = (root / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.M))
    benches = re.search(r"^BENCHES := (.*)$", text, re.M)
    return targets | {f"bench-{name}" for name in (benches.group(1).split() if benches else [])}


def subcommands(root):
    names = {p.stem for p in (root / "src" / "cli").glob("*.cc")}
    return {n.removesuffix("_command") for n in names} | {"test"}


def check_document(path, root, targets, commands):
    text = path.read_text()
    where = path.relative_to(root)
    for link in LINK.findall(text):
        if not re.match(r"[a-z]+:", link) and not (path.parent / link).exists():
            yield f"{where}: link to {link}, which does not exist"
    for ticked, indented in MAKE.findall(text):
        target = ticked or indented
        if target not in targets and not target.startswith("bench-NAME"):
            yield f"{where}: make {target}: no such target"
    for match in re.finditer(r"\./hidane (\w[\w-]*)", text):
        if match.group(1) not in commands | LATER:
            yield f"{where}: ./hidane {match.group(1)}: no such subcommand"
    for script in SCRIPT.findall(text):
        if not (root / script).exists() and not (path.parent / script).exists():
            yield f"{where}: names {script}, which does not exist"


def check_trace(path, root):
    """A life-of-a-... document: names of files and functions must still be true."""
    where = path.relative_to(root)
    steps = STEP.findall(path.read_text())
    if len(steps) < 8:
        yield f"{where}: only {len(steps)} steps name a file and a function"
    for file, function in steps:
        name = function.split("::")[-1]
        if not (root / file).exists():
            yield f"{where}: {file} does not exist"
        elif not re.search(rf"\b{re.escape(name)}\b", (root / file).read_text()):
            yield f"{where}: {file} has no {name}"


def check(root):
    targets, commands = make_targets(root), subcommands(root)
    for path in documents(root):
        yield from check_document(path, root, targets, commands)
    for path in sorted((root / "docs").glob("life_of_a_*.md")):
        yield from check_trace(path, root)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    default = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=default)
    problems = list(check(parser.parse_args().root.resolve()))
    for problem in problems:
        print(problem)
    print(f"docs: {len(problems)} problem(s)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
