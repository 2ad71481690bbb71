"""libhidane_vtoken as other programs meet it: the shared object, and the examples that drive it."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ.get("HIDANE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
LIBRARY = pathlib.Path(os.environ["HIDANE_BUILD_DIR"]) / "src/vtoken/libhidane_vtoken.so"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=120, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The C example, as strict C99."""
    folder = tmp_path_factory.mktemp("c")
    flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{SOURCE}/include"]
    run("cc", *flags, SOURCE / "examples/vtoken_host.c", f"-L{LIBRARY.parent}", "-lhidane_vtoken",
        "-ldl", "-o", folder / "host")
    run("cc", *flags, "-shared", "-fPIC", SOURCE / "examples/vtoken_policy.c", "-o",
        folder / "plugin.so")
    return folder


def run_host(folder, *args):
    return run(folder / "host", *args, env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY.parent)})


def test_exports_what_the_header_declares_and_nothing_else():
    header = (SOURCE / "include/hidane_vtoken.h").read_text()
    declared = set(re.findall(r"^HIDANE_VT_API [^;(]*?(hidane_vt_\w+)\(", header, re.M))
    symbols = {line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    assert len(declared) == 25
    assert symbols == declared


def test_soname_carries_the_abi_and_no_cryptography_is_needed():
    dynamic = run("readelf", "-d", LIBRARY)
    assert "soname: [libhidane_vtoken.so.1]" in dynamic
    needed = re.findall(r"\(NEEDED\).*\[(\w+)", dynamic)
    assert set(needed) <= {"libfmt", "libstdc", "libm", "libgcc_s", "libc", "libasan", "libubsan"}


def test_the_c_example(host):
    out = run_host(host)
    assert "even: 40 tokens -> 22" in out
    assert "held at the end: 0 blocks, 0 bytes" in out


def test_a_policy_from_a_shared_object(host):
    assert "newest-of-eight: 40 tokens -> 22" in run_host(host, host / "plugin.so")


def test_a_foreign_engine_in_python_agrees_with_masked_attention():
    out = run(sys.executable, SOURCE / "examples/vtoken_foreign_engine.py", LIBRARY)
    difference = float(re.search(r"reference B: (\S+)", out).group(1))
    assert difference < 1e-12
    assert "21 live in 6 blocks" in out


def test_installs_for_pkg_config_and_cmake(tmp_path):
    build = os.environ["HIDANE_BUILD_DIR"]
    run("cmake", "--install", build, "--component", "vtoken", "--prefix", tmp_path)
    env = {**os.environ, "PKG_CONFIG_PATH": f"{tmp_path}/lib/pkgconfig"}
    flags = run("pkg-config", "--cflags", "--libs", "hidane_vtoken", env=env).split()
    run("cc", SOURCE / "examples/vtoken_host.c", *flags, "-ldl", "-o", tmp_path / "host")
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nfind_package(hidane_vtoken REQUIRED)\n"
        f"add_executable(p {SOURCE}/examples/vtoken_host.c)\n"
        "target_link_libraries(p hidane::vtoken dl)\n")
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={tmp_path}")
    run("cmake", "--build", project / "build")
    assert "held at the end: 0 blocks, 0 bytes" in run(project / "build/p")
