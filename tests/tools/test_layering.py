"""The layering check passes on this tree and fails on planted violations."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("HIDANE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TOOL = ROOT / "tools" / "layering.py"


def run(root):
    return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True,
                          check=False)


@pytest.fixture
def tree(tmp_path):
    """A small tree with the real layer table: base, routing and net."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "layers.txt", tmp_path / "tools")
    for room in ("base", "routing", "net"):
        (tmp_path / "src" / room).mkdir(parents=True)
        (tmp_path / "src" / room / "README.md").write_text("a room\n")
        (tmp_path / "src" / room / "a.h").write_text("#pragma once\n")
    return tmp_path


def test_this_tree_is_clean():
    result = run(ROOT)
    assert result.returncode == 0, result.stdout


def test_allowed_edges_pass(tree):
    (tree / "src/routing/b.cc").write_text('#include "base/a.h"\n')
    assert run(tree).returncode == 0


@pytest.mark.parametrize("file, text, says", [
    ("src/routing/b.cc", '#include "net/a.h"\n', "may not include 'net'"),
    ("src/base/b.h", '#include "routing/a.h"\n', "may not include 'routing'"),
    ("src/routing/b.cc", "#include <boost/asio.hpp>\n", "belongs into src/net"),
    ("src/routing/b.cc", "#include <mutex>\n", "pure room"),
    ("src/routing/b.cc", "auto t = std::chrono::steady_clock::now();\n", "by reference"),
    ("src/unheard/b.cc", "int x;\n", "no such room"),
])
def test_a_planted_violation_fails_and_names_the_file(tree, file, text, says):
    path = tree / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    result = run(tree)
    assert result.returncode == 1
    assert says in result.stdout


def test_a_cycle_is_named(tree):
    layers = tree / "tools" / "layers.txt"
    layers.write_text("base: net\nrouting:\nnet: base\n")
    (tree / "src/base/b.h").write_text('#include "net/a.h"\n')
    (tree / "src/net/b.h").write_text('#include "base/a.h"\n')
    result = run(tree)
    assert result.returncode == 1
    assert "base -> net -> base" in result.stdout
