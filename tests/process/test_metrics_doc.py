"""docs/metrics.md is generated from what the processes really expose.

Rewrite it: HIDANE_WRITE_DOCS=1 with this test.
"""
import os
import pathlib
import re
import sys
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import hidane_process as hidane  # noqa: E402

DOCUMENT = hidane.SOURCE / "docs/metrics.md"
HEAD = """# Metrics

Prometheus text format. Label sets are closed: no tenant, no prompt, no client is ever a label.
Generated from running processes by `tests/process/test_metrics_doc.py`; do not edit.
"""


def described(url):
    """[(name, type, labels, help)] of an exposition page."""
    with urllib.request.urlopen(url + "/metrics", timeout=10) as page:
        text = page.read().decode()
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.M))
    types = dict(re.findall(r"^# TYPE (\S+) (.*)$", text, re.M))
    rows = []
    for name, kind in types.items():
        series = re.search(rf"^{name}(?:_bucket|_sum|_count)?\{{(.*)\}} ", text, re.M)
        labels = re.findall(r'(\w+)="', series.group(1)) if series else []
        rows.append((name, kind, ", ".join(n for n in labels if n != "le"), helps[name]))
    return rows


def section(title, rows):
    lines = [f"\n## {title}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n"]
    lines += [f"| `{name}` | {kind} | {labels} | {text} |\n" for name, kind, labels, text in rows]
    return "".join(lines)


def test_the_checked_in_document_is_current(tmp_path):
    if not hidane.MODEL.exists():
        pytest.skip(f"no {hidane.MODEL.name}: run tools/fetch_model.sh")
    with hidane.fleet(tmp_path, engines=1) as (gateway, engines):
        model = hidane.served_model(gateway.url)
        hidane.call(gateway.url + "/v1/completions",
                    {"model": model, "prompt": "a", "max_tokens": 1})
        text = (HEAD + section("hidane gateway", described(gateway.admin)) +
                section("hidane engine", described(engines[0].url)))
    if os.environ.get("HIDANE_WRITE_DOCS"):
        DOCUMENT.write_text(text)
    assert DOCUMENT.read_text() == text, "run this test with HIDANE_WRITE_DOCS=1"
