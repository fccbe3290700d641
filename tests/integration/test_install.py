# SPDX-License-Identifier: MIT
"""What `meson install` lays out works: the program, and the example built with pkg-config."""

import os
import shutil
import subprocess

import pytest
import sa as sa_module

ROOT = sa_module.ROOT


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A staged installation; the prefix below its root."""
    target = tmp_path_factory.mktemp("installed")
    subprocess.run(
        ["meson", "install", "-C", sa_module.BUILD, "--no-rebuild", "--quiet", "--destdir", target],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (binary,) = target.glob("**/bin/sandbox-agent")
    return target, binary.parent.parent


def test_the_installed_program_runs(installed, agent, state_dir):
    _, prefix = installed
    env = {**os.environ, "SANDBOX_AGENT_LIBEXEC": str(prefix / "libexec/sandbox-agent")}
    for language, code in (
        ("python", "print(42)"),
        ("node", "console.log(42)"),
        ("r", "cat('42\\n')"),
    ):
        done = subprocess.run(
            [prefix / "bin/sandbox-agent", "run", "-l", language, "-c", code],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="needs pkg-config")
def test_the_example_builds_with_pkg_config(installed, state_dir, tmp_path):
    root, prefix = installed
    (config,) = prefix.glob("**/sandbox_agent.pc")
    (library,) = prefix.glob("**/libsandbox_agent.so.0")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "sandbox_agent"],
        env={
            **os.environ,
            "PKG_CONFIG_PATH": str(config.parent),
            "PKG_CONFIG_SYSROOT_DIR": str(root),
        },
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    program = tmp_path / "hello"
    subprocess.run(["cc", ROOT / "examples/c/hello.c", "-o", program, *flags], check=True)
    env = {
        **os.environ,
        "LD_LIBRARY_PATH": str(library.parent),
        "SANDBOX_AGENT_LIBEXEC": str(prefix / "libexec/sandbox-agent"),
    }
    done = subprocess.run(
        [program], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith('result: {"text/plain":"42"}\nsandbox\n')


def test_the_header_is_plain_c_and_cpp(tmp_path):
    header = ROOT / "include/sandbox_agent.h"
    for compiler, standard, suffix in (("cc", "c11", "c"), ("c++", "c++11", "cc")):
        if not shutil.which(compiler):
            continue
        source = tmp_path / f"only.{suffix}"
        source.write_text(f'#include "{header}"\nint main() {{ return 0; }}\n')
        subprocess.run(
            [
                compiler,
                f"-std={standard}",
                "-Wall",
                "-Wextra",
                "-Wpedantic",
                "-Werror",
                "-fsyntax-only",
                source,
            ],
            check=True,
        )
