"""The documents' links, commands and traces are true, and the check notices when they are not."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(os.environ.get("HIDANE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TOOL = ROOT / "tools" / "check_docs.py"


def run(root):
    return subprocess.run([sys.executable, TOOL, "--root", root], capture_output=True, text=True,
                          check=False)


def test_this_tree_is_clean():
    result = run(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("text, says", [
    ("[a](missing.md)\n", "missing.md"),
    ("Run `make nonsense`.\n", "make nonsense"),
    ("    ./hidane nonsense\n", "./hidane nonsense"),
    ("See tools/nonsense.sh.\n", "tools/nonsense.sh"),
])
def test_a_promise_that_is_not_kept_is_named(tmp_path, text, says):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "Makefile").write_text("build:\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(text)
    result = run(tmp_path)
    assert result.returncode == 1
    assert says in result.stdout


def test_a_trace_that_names_a_lost_function_fails(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "Makefile").write_text("build:\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "src" / "net").mkdir(parents=True)
    (tmp_path / "src/net/a.cc").write_text("void Accept() {}\n")
    steps = "".join(f"{i}. `src/net/a.cc` `Accept`\n" for i in range(8))
    (tmp_path / "docs/life_of_a_request.md").write_text(steps)
    assert run(tmp_path).returncode == 0
    (tmp_path / "docs/life_of_a_request.md").write_text(steps + "9. `src/net/a.cc` `Gone`\n")
    result = run(tmp_path)
    assert result.returncode == 1
    assert "has no Gone" in result.stdout
