#!/usr/bin/env python3
"""Fails on an include edge between rooms that tools/layers.txt does not allow, and on a cycle.

usage: tools/layering.py [--root DIR]

Also: transport headers (Asio, Beast, nghttp2, sockets) only in src/net; pure rooms include no
threads, no chrono clock and no sockets; every room has a README.md.
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([a-z_]+)/[^"]+"|<([^>]+)>)', re.M)
PURE = {"prompt", "routing", "admission", "vtoken", "sched"}
NET_ONLY = re.compile(r"boost/(asio|beast)|nghttp2|sys/socket\.h|netinet/|arpa/inet\.h|sys/epoll\.h")
PURE_BANNED_INCLUDE = re.compile(r"^(thread|mutex|condition_variable|future|sys/.*|unistd\.h)$")
PURE_BANNED_TEXT = re.compile(r"\b\w*_clock::now|\brandom_device\b|\bsleep_for\b|SteadyClock\(\)")


def read_layers(path):
    layers = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        room, _, allowed = line.partition(":")
        layers[room.strip()] = set(allowed.split())
    return layers


def cycle(edges):
    """A cycle among rooms as a list, or None."""
    state, stack = {}, []

    def visit(room):
        state[room] = 1
        stack.append(room)
        for other in sorted(edges.get(room, ())):
            if state.get(other) == 1:
                return stack[stack.index(other):] + [other]
            if other not in state and (found := visit(other)):
                return found
        stack.pop()
        state[room] = 2
        return None

    for room in sorted(edges):
        if room not in state and (found := visit(room)):
            return found
    return None


def check_file(path, room, layers, edges):
    text = path.read_text(errors="replace")
    test = path.stem.endswith(("_test", "_bench"))
    for quoted, system in INCLUDE.findall(text):
        if quoted in layers and quoted != room:
            edges.setdefault(room, set()).add(quoted)
            allowed = layers[room]
            if "*" not in allowed and quoted not in allowed:
                yield f"{path}: room '{room}' may not include '{quoted}' (tools/layers.txt)"
        if system and room != "net" and NET_ONLY.search(system):
            yield f"{path}: <{system}> belongs into src/net alone"
        if system and room in PURE and not test and PURE_BANNED_INCLUDE.match(system):
            yield f"{path}: pure room '{room}' includes <{system}>"
    if room in PURE and not test:
        for match in PURE_BANNED_TEXT.findall(text):
            yield f"{path}: pure room '{room}' uses {match}: time and chance come in by reference"


def check(root):
    layers = read_layers(root / "tools" / "layers.txt")
    edges = {}
    for room_dir in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        room = room_dir.name
        sources = [p for s in ("*.h", "*.cc", "*.c") for p in room_dir.rglob(s)]
        if not sources:
            continue
        if room not in layers:
            yield f"{room_dir}: no such room in tools/layers.txt"
            continue
        if not (room_dir / "README.md").exists():
            yield f"{room_dir}: a room needs a README.md"
        for path in sorted(sources):
            yield from check_file(path, room, layers, edges)
    if found := cycle(edges):
        yield "cycle between rooms: " + " -> ".join(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    default = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=default)
    problems = list(check(parser.parse_args().root))
    for problem in problems:
        print(problem)
    print(f"layering: {len(problems)} violation(s)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
