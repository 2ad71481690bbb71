#!/usr/bin/env python3
"""Runs ctest in a build folder and closes with one line: `N passed, N failed, N skipped`.

usage: tools/run_tests.py BUILD_DIR [ctest argument...]

Whole-process suites run under pytest inside one ctest each; they write JUnit files to
BUILD_DIR/junit/, whose cases are counted one by one.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def cases(path):
    """(passed, failed, skipped, failed names) of one JUnit file."""
    passed, failed, skipped, names = 0, 0, 0, []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        if case.find("failure") is not None or case.find("error") is not None or status == "fail":
            failed += 1
            names.append(f"{case.get('classname') or ''}.{case.get('name')}")
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped, names


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    junit = build / "junit"
    shutil.rmtree(junit, ignore_errors=True)
    junit.mkdir(parents=True)
    report = build / "ctest.xml"
    report.unlink(missing_ok=True)
    jobs = str(os.cpu_count() or 2)
    command = ["ctest", "--test-dir", str(build), "-j", jobs, "--output-on-failure",
               "--output-junit", str(report), "--quiet", *sys.argv[2:]]
    print(f"hidane: running the tests in {build.name} ({jobs} at a time)", flush=True)
    returned = subprocess.run(command, check=False).returncode
    if not report.exists():
        sys.exit("hidane: ctest wrote no report; nothing ran")
    passed, failed, skipped, names = cases(report)
    for suite in sorted(junit.glob("*.xml")):
        p, f, s, n = cases(suite)
        passed, failed, skipped, names = passed + p, failed + f, skipped + s, names + n
    for name in names:
        print(f"FAILED {name}")
    if returned != 0 and failed == 0:
        failed = 1
        print(f"FAILED ctest itself (exit code {returned})")
    if passed + failed == 0:
        failed = 1
        print("FAILED no test ran")
    summary = f"{passed} passed, {failed} failed, {skipped} skipped"
    (build / "tests.summary").write_text(summary + "\n")
    print(summary, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
