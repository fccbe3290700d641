# SPDX-License-Identifier: MIT
"""Sealed values are Fernet tokens: what we seal Python's `cryptography` opens, and the other way.

The program sealed-probe seals and opens with the keys that a server finds in its settings.
"""

import base64
import os
import stat
import subprocess
import time

import pytest
import sa

fernet = pytest.importorskip(
    "cryptography.fernet", reason="the package 'cryptography' is not in the test environment")

PROBE = sa.BUILD / "tests/lib/sealed-probe"
DENIED = 4
INVALID = 1
TEXTS = (b"", b"x", b"fifteen bytes..", b"sixteen bytes...", b"seventeen bytes..",
         bytes(range(256)) * 40, "schlüssel 🐱".encode())


def probe(*words, data, keys="", state="/nonexistent"):
    """Run sealed-probe with ENCRYPTION_KEY, or with the key file of a state directory."""
    env = {"PATH": os.environ["PATH"], "ENCRYPTION_KEY": keys, "SANDBOX_STATE_DIR": str(state)}
    return subprocess.run([PROBE, *words], input=data, capture_output=True, env=env, check=False,
                          timeout=30)


def succeed(*words, **options):
    """Run sealed-probe and return what it prints."""
    done = probe(*words, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def key():
    """A key as cryptography makes it."""
    return fernet.Fernet.generate_key().decode()


@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_cryptography_opens_what_we_seal(key, text):
    token = succeed("seal", data=text, keys=key)
    assert fernet.Fernet(key).decrypt(token, ttl=60) == text


@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_we_open_what_cryptography_seals(key, text):
    token = fernet.Fernet(key).encrypt(text)
    assert succeed("open", "60", data=token, keys=key) == text


def test_keys_rotate_as_multifernet_does(key):
    new = fernet.Fernet.generate_key().decode()
    both = f"{new},{key}"
    multi = fernet.MultiFernet([fernet.Fernet(new), fernet.Fernet(key)])
    old_token = fernet.Fernet(key).encrypt(b"secret")
    assert succeed("open", data=old_token, keys=both) == b"secret"
    assert succeed("open", data=multi.rotate(old_token), keys=new) == b"secret"
    assert fernet.Fernet(new).decrypt(succeed("seal", data=b"secret", keys=both)) == b"secret"
    with pytest.raises(fernet.InvalidToken):
        fernet.Fernet(key).decrypt(succeed("seal", data=b"secret", keys=both))


@pytest.mark.parametrize("seconds, opens", [(0, True), (59, True), (62, False), (-59, True),
                                            (-62, False)])
def test_age_is_judged_alike(key, seconds, opens):
    """A token of so many seconds ago, with a ttl of 60; one second is left for slow machines."""
    now = int(time.time())
    token = fernet.Fernet(key).encrypt_at_time(b"secret", now - seconds)
    done = probe("open", "60", data=token, keys=key)
    assert (done.returncode == 0) == opens, done.stderr.decode()
    try:
        theirs = fernet.Fernet(key).decrypt_at_time(token, 60, now) == b"secret"
    except fernet.InvalidToken:
        theirs = False
    assert theirs == opens


def test_what_is_wrong_is_an_error_state_and_not_empty(key):
    token = fernet.Fernet(key).encrypt(b"secret")
    other = fernet.Fernet.generate_key().decode()
    raw = bytearray(base64.urlsafe_b64decode(token))
    for changed in [token[:-4], token[4:], token + b"AAAA", b"", b"\0" * 100]:
        done = probe("open", data=changed, keys=key)
        assert (done.returncode, done.stdout) == (DENIED, b"")
    for at in range(len(raw)):
        raw[at] ^= 1
        done = probe("open", data=base64.urlsafe_b64encode(raw), keys=key)
        assert (done.returncode, done.stdout) == (DENIED, b"")
        raw[at] ^= 1
    done = probe("open", data=token, keys=other)
    assert (done.returncode, done.stdout) == (DENIED, b"")
    assert b"another key" in done.stderr


@pytest.mark.parametrize("change", [lambda key: key[:-1], lambda key: key[:20], lambda key: "x",
                                    lambda key: key + "," + key[:-2] + "=="],
                         ids=["unpadded", "short", "x", "second"])
def test_a_bad_key_names_its_setting_and_is_not_shown(key, change):
    bad = change(key)
    done = probe("seal", data=b"secret", keys=bad)
    assert done.returncode == INVALID
    assert b"ENCRYPTION_KEY" in done.stderr
    assert key[:10].encode() not in done.stderr
    assert b"secret" not in done.stderr


def test_without_a_setting_a_private_key_file_is_made_that_cryptography_reads(tmp_path):
    token = succeed("seal", data=b"secret", state=tmp_path)
    file = tmp_path / "encryption.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert fernet.Fernet(file.read_text().strip()).decrypt(token) == b"secret"
    assert succeed("open", data=token, state=tmp_path) == b"secret"
    assert [path.name for path in tmp_path.iterdir()] == ["encryption.key"]
    file.chmod(0o644)
    done = probe("open", data=token, state=tmp_path)
    assert done.returncode == DENIED
    assert b"0600" in done.stderr
