# SPDX-License-Identifier: MIT
"""A feature taken away (ISO-42): refused by name, or started and listed. The probe of doctor."""

import os
import shutil
import subprocess

import pytest

import keeper as lib

LAUNCH = lib.BUILD_DIR / "launcher/sandbox-launch"


@pytest.mark.parametrize("feature, name", (
    ("seccomp", "seccomp filters"), ("userns", "user namespaces"),
    ("netns", "network namespaces")))
def test_iso_42_a_required_feature(start, image, feature, name):
    keeper = start(env={"SBX_WITHOUT": feature})
    with pytest.raises(lib.KeeperError, match=f"this host has no {name}"):
        keeper.open(image)
    sandbox = keeper.open(image, flags=lib.ALLOW_DEGRADED)
    assert any(feature[:4] in entry or "network" in entry or "user" in entry
               for entry in sandbox.degraded)
    assert sandbox.python("import os; print(os.getuid())").strip() not in ("0", "65534")
    # Whatever is missing, the host's root is never inside.
    status = sandbox.run("cat", "/proc/self/status").stdout.decode()
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
    assert sandbox.run("sh", "-c", "touch /etc/x || mount -t tmpfs x /tmp").end["status"] == "error"
    sandbox.close()


@pytest.mark.parametrize("feature, entry", (
    ("landlock", "no landlock"), ("cgroup", "no memory cgroup"), ("idmap", "no idmapped mounts"),
    ("loop", "no quota")))
def test_iso_42_a_feature_that_is_listed(start, image, feature, entry):
    keeper = start(env={"SBX_WITHOUT": feature})
    sandbox = keeper.open(image, disk_bytes=16 << 20)
    assert entry in sandbox.degraded
    assert sandbox.python("print(6 * 7)") == "42\n"
    sandbox.close()


def test_nothing_is_degraded_where_all_is_there(start, image):
    sandbox = start().open(image, disk_bytes=16 << 20, cpu_quota_us=50000, cpu_period_us=100000)
    assert sandbox.degraded == []
    sandbox.close()


def test_an_ordinary_user_without_user_namespaces(start, image):
    keeper = start("user", env={"SBX_WITHOUT": "userns"})
    with pytest.raises(lib.KeeperError, match="no user namespaces"):
        keeper.open(image, flags=lib.ALLOW_DEGRADED)


def test_no_egress_program(start, image, tmp_path):
    broken = tmp_path / "egress"
    broken.write_text("not a program")
    keeper = start(egress=broken)
    # The names are not served, and nothing else works either: closed, not open.
    sandbox = keeper.open(image, network="public", ports=[80])
    run = sandbox.run("timeout", "3", "python3", "-c",
                      "import socket; print(socket.create_connection(('10.0.0.1', 80), 2).recv(1))")
    assert run.end["status"] == "error"
    sandbox.close()


def test_iso_42_without_egress_only_the_network_is_refused(start, image):
    keeper = start(env={"SBX_WITHOUT": "egress"})
    with pytest.raises(lib.KeeperError, match="no sandbox-egress"):
        keeper.open(image, network="public", ports=[80])
    keeper.open(image).close()


@pytest.mark.parametrize("status", (0, 1))
def test_an_ordinary_user_gets_a_scope_where_there_is_one(start, bare, scratch, user, status):
    told, program, runtime = scratch / "told", scratch / "systemd-run", scratch / "runtime"
    runtime.mkdir(exist_ok=True)
    os.chown(runtime, *user)
    told.unlink(missing_ok=True)
    told.touch(mode=0o666)
    told.chmod(0o666)
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {told}\n[ {status} = 0 ] || exit 1\n"
                       "while [ \"$1\" != -- ]; do shift; done; shift\nexec \"$@\"\n")
    program.chmod(0o755)
    keeper = start("user", env={"SBX_SYSTEMD_RUN": str(program), "XDG_RUNTIME_DIR": str(runtime)})
    keeper.open(bare).close()
    assert (runtime / "sandbox-agent/slots").exists()
    lines = told.read_text().splitlines()
    assert lines[0] == "--user --scope --quiet --collect -p Delegate=yes -- /bin/true"
    # Where the try fails, the keeper goes on where it is.
    assert len(lines) == (2 if status == 0 else 1)
    assert status or "sandbox-launch --keeper --linger-ms" in lines[1]


def probe(*options):
    """Run the probe; {name: (result, detail, fix)}."""
    text = subprocess.run([LAUNCH, "--probe", *options], check=True, capture_output=True,
                          text=True).stdout
    return {name: tuple(rest) for name, *rest in (line.split("\t") for line in text.splitlines())}


def test_the_probe_as_root():
    found = probe("--image-dir", "/var")
    assert {"user-namespaces", "namespaces", "mounts", "proc", "seccomp", "landlock", "network",
            "memory-cgroup", "pids-cgroup", "cpu-cgroup", "overlay", "id-mapped-mounts",
            "subordinate-ids", "loop-devices", "calls", "no-new-privs"} == set(found)
    for name, (result, _, fix) in found.items():
        assert result in ("ok", "missing", "degraded"), name
        assert (result == "ok") == (fix == ""), name


def test_the_probe_names_fixes_for_a_user(user, scratch):
    copy = scratch / "sandbox-launch"
    shutil.copy(LAUNCH, copy)
    text = subprocess.run([copy, "--probe"], check=True, capture_output=True, text=True,
                          user=user[0], group=user[1], extra_groups=[]).stdout
    assert "loop-devices\tdegraded\t" in text


def test_the_probe_with_given_results(tmp_path):
    fake = tmp_path / "fake"
    fake.write_text("user-namespaces\tmissing\tnone\tsysctl x\nmade-up\tdegraded\ta\tb\nnonsense\n")
    found = probe("--fake", str(fake))
    assert found["user-namespaces"] == ("missing", "none", "sysctl x")
    assert found["made-up"] == ("degraded", "a", "b") and "nonsense" not in found


def test_usage():
    for words in ((), ("--keeper", "--what"), ("--probe", "--image-dir"), ("--nothing",)):
        run = subprocess.run([LAUNCH, *words], capture_output=True, text=True, check=False)
        assert run.returncode == 2 and "usage:" in run.stderr
    assert subprocess.run([LAUNCH, "--keeper"], capture_output=True, check=False,
                          close_fds=True).returncode != 0
