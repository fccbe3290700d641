# SPDX-License-Identifier: MIT
"""A PostgreSQL of the test's own: Debian's programs, a cluster in a temporary folder.

PostgreSQL refuses to run as root, so root gives the folder to an ordinary user and starts it as
that one. It listens on 127.0.0.1 only, wants a password, and is stopped by the process id of its
postmaster.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

DATABASE = "sandbox"
USER = "tester"
FAST = ("fsync=off", "full_page_writes=off")


class Missing(Exception):
    """PostgreSQL is not installed here."""


def programs():
    """Return the directory of initdb and postgres: Debian's newest, else the one of PATH."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda path: int(path.parts[-3]), default=None)
    found = newest or shutil.which("initdb")
    if found is None:
        raise Missing("no initdb: install Debian's package postgresql")
    return Path(found).resolve().parent


def ordinary_user():
    """Return the passwd entry of whom the cluster belongs to; None when we are not root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def free_port():
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A running cluster; a context manager."""

    def __init__(self, *settings):
        """Make and start it; settings are "name=value" of postgresql.conf."""
        self.bin = programs()
        self.user = ordinary_user()
        self.password = secrets.token_hex(12)
        self.settings = (*FAST, *settings)
        self.folder = Path(tempfile.mkdtemp(prefix="sbx-pg-"))
        self.data = self.folder / "data"
        self.server = None
        self.port = free_port()
        try:
            self._make()
            self.start()
            self.sql(f"CREATE DATABASE {DATABASE}", database="postgres")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        """Give the running cluster."""
        return self

    def __exit__(self, *exc):
        """Stop it and remove it."""
        self.close()

    def _as_user(self):
        if self.user is None:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def _make(self):
        words = self.folder / "password"
        words.write_text(self.password)
        if self.user is not None:
            for path in (self.folder, words):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        subprocess.run(
            [self.bin / "initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256",
             f"--pwfile={words}", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self._as_user())

    def start(self):
        """Start the postmaster and wait until it answers."""
        words = [self.bin / "postgres", "-D", self.data, "-p", str(self.port),
                 "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}"]
        for setting in self.settings:
            words += ["-c", setting]
        log = (self.folder / "log").open("ab")
        with log:
            self.server = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           cwd=self.folder, **self._as_user())
        deadline = time.monotonic() + 60
        while self._psql("SELECT 1", "postgres").returncode != 0:
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start:\n{self.log()[-2000:]}")
            time.sleep(0.05)

    def stop(self, how=signal.SIGINT):
        """Stop the postmaster; SIGINT ends its connections at once, SIGQUIT is a crash."""
        if self.server is not None and self.server.poll() is None:
            self.server.send_signal(how)
            self.server.wait(timeout=30)
        self.server = None

    def close(self):
        """Stop it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        """Return what the server has written."""
        return (self.folder / "log").read_text(errors="replace")

    def environment(self, **changes):
        """Return the settings for a program that is to use it."""
        return {"POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": str(self.port),
                "POSTGRES_USER": USER, "POSTGRES_PASSWORD": self.password,
                "POSTGRES_DB": DATABASE, **changes}

    def _psql(self, text, database):
        environment = {**os.environ, "PGPASSWORD": self.password, "PGCONNECT_TIMEOUT": "5"}
        return subprocess.run(
            [self.bin / "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-X", "-q",
             "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-f", "-"],
            input=text, env=environment, capture_output=True, text=True, check=False, timeout=60)

    def sql(self, text, database=DATABASE):
        """Carry statements out; return the rows as lists of texts."""
        done = self._psql(text, database)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [line.split("|") for line in done.stdout.splitlines()]
