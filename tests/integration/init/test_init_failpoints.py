# SPDX-License-Identifier: MIT
"""Init where a named point fails or waits; what a client sees. Debug builds have the points."""

import time

import pytest

from places import BINARY, FAKE

pytestmark = pytest.mark.skipif(not BINARY.exists() or b"SBX_FAIL" not in BINARY.read_bytes(),
                                reason="built without failpoints")


def started(start, point):
    init = start(environment={"SBX_FAIL": point})
    client = init.connect()
    assert client.kernel(["/usr/bin/python3", "-I", str(FAKE)]).wait().end["status"] == "ok"
    return client


def test_exec_send_fails(start):
    client = started(start, "exec-send:1:err=EIO")
    end = client.exec("k.out('never')").wait().end
    assert end["status"] == "error" and end["errno"] == "5"
    assert client.exec("k.out('next')").wait().stdout == b"next"


def test_import_half_fails(start):
    client = started(start, "import-half:2:err=ENOSPC")
    end = client.write("f", b"x" * 200_000)
    assert end["status"] == "error" and end["errno"] == "28" and end["cause"] == "disk"
    assert client.file("LIST", ".").of("REPORT") == []
    assert client.write("f", b"x" * 200_000)["status"] == "ok"


@pytest.mark.parametrize("point", ["import-open", "import-rename"])
def test_import_fails_and_leaves_nothing(start, point):
    client = started(start, f"{point}:2:err=EIO")
    assert client.write("f", b"old")["status"] == "ok"
    end = client.write("f", b"new" * 50_000)
    assert end["status"] == "error" and end["errno"] == "5"
    assert [entry["name"] for entry in client.file("LIST", ".").of("REPORT")] == ["f"]
    assert client.read_file("f").raw("DATA") == b"old"


def test_export_open_fails(start):
    client = started(start, "export-open:1:err=EMFILE")
    client.write("f", b"x")
    failed = client.read_file("f")
    assert failed.end["errno"] == "24" and not failed.of("REPORT")
    assert client.read_file("f").raw("DATA") == b"x"


@pytest.mark.parametrize("point", ["first-output", "exec-done", "exec-send"])
def test_slow_points_lose_nothing(start, point):
    client = started(start, f"{point}:sleep=300")
    begin = time.monotonic()
    cell = client.exec("k.out('out'); k.display('d'); k.result('r')").wait()
    assert cell.order == ["STDOUT", "DISPLAY", "RESULT", "END"]
    assert time.monotonic() - begin >= 0.3


def test_lease_renewal_that_is_slow(start):
    client = started(start, "lease-renew:sleep=300")
    client.send("LEASE", 0, [("lease_ms", 5000)])
    assert client.status()["kernel"] == "ready"
