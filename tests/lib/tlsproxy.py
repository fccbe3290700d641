# SPDX-License-Identifier: MIT
"""A proxy as companies run them: wants a password, breaks TLS open, signs with its own CA.

    with TlsProxy(directory, local={"code.test": 8080}) as proxy:
        settings = proxy.settings()    # SANDBOX_PROXY and EXTRA_CA, as environment

A host of `local` is a plain server on loopback; others are reached for real, through the machine's
own proxy where it has one. Port 80 is passed on as it is.
"""

import base64
import os
import secrets
import select
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit


def _openssl(directory, *words):
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)


def _upstream(host, port):
    """A connection to the real host, by the machine's own proxy if there is one."""
    proxy = urlsplit(os.environ.get("HTTPS_PROXY", os.environ.get("https_proxy", "")))
    if not proxy.hostname:
        return socket.create_connection((host, port), 20)
    sock = socket.create_connection((proxy.hostname, proxy.port or 3128), 20)
    auth = ""
    if proxy.username:
        pair = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        auth = f"Proxy-Authorization: Basic {pair}\r\n"
    sock.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{auth}\r\n".encode())
    if b" 200" not in sock.recv(4096).partition(b"\r\n")[0]:
        raise OSError("the machine's proxy refuses")
    return sock


def _relay(a, b):
    """Bytes both ways until one side ends; TLS sockets may hold bytes that select does not see."""
    while True:
        waiting = [s for s in (a, b) if isinstance(s, ssl.SSLSocket) and s.pending()]
        for source in waiting or select.select([a, b], [], [], 60)[0] or [None]:
            data = source.recv(1 << 16) if source else b""
            if not data:
                return
            (b if source is a else a).sendall(data)


class TlsProxy:
    """The proxy; `seen` has the host:port pairs that were asked for, `refused` counts the rest."""

    def __init__(self, directory, local):
        self.directory, self.local = Path(directory), local
        self.secret, self.seen, self.refused = "canary" + secrets.token_hex(8), [], 0
        self._contexts, self._lock = {}, threading.Lock()
        _openssl(
            self.directory,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
            "-days",
            "2",
            "-subj",
            "/CN=Test CA",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def settings(self):
        """The settings that make sandboxes use it."""
        return {
            "SANDBOX_PROXY": f"http://proxyuser:{self.secret}@127.0.0.1:{self.port}",
            "SANDBOX_NO_PROXY": "direct.test",
            "EXTRA_CA": str(self.directory / "ca.crt"),
        }

    def _context(self, host):
        """A server's TLS side with a certificate for a host, made now."""
        with self._lock:
            if host not in self._contexts:
                name = f"leaf{len(self._contexts)}"
                extension = self.directory / f"{name}.ext"
                extension.write_text(
                    f"subjectAltName=DNS:{host}\nbasicConstraints=CA:FALSE\n"
                    "authorityKeyIdentifier=keyid\n"
                )
                _openssl(
                    self.directory,
                    "req",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                    "-keyout",
                    f"{name}.key",
                    "-out",
                    f"{name}.csr",
                    "-subj",
                    "/CN=leaf",
                )
                _openssl(
                    self.directory,
                    "x509",
                    "-req",
                    "-in",
                    f"{name}.csr",
                    "-CA",
                    "ca.crt",
                    "-CAkey",
                    "ca.key",
                    "-CAcreateserial",
                    "-days",
                    "2",
                    "-out",
                    f"{name}.crt",
                    "-extfile",
                    extension.name,
                )
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(
                    self.directory / f"{name}.crt", self.directory / f"{name}.key"
                )
                self._contexts[host] = context
            return self._contexts[host]

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            with sock:
                self._connect(sock)
        except OSError:
            pass

    def _connect(self, sock):
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(4096)
        words = head.split()
        wanted = base64.b64encode(f"proxyuser:{self.secret}".encode())
        if words[0] != b"CONNECT" or b"Basic " + wanted not in head:
            self.refused += 1
            sock.sendall(b"HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic\r\n\r\n")
            return
        host, _, port = words[1].decode().rpartition(":")
        self.seen.append(f"{host}:{port}")
        sock.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        inner = sock if port == "80" else self._context(host).wrap_socket(sock, server_side=True)
        with inner, self._dial(host, int(port)) as outer:
            _relay(inner, outer)

    def _dial(self, host, port):
        if host in self.local:
            return socket.create_connection(("127.0.0.1", self.local[host]), 20)
        sock = _upstream(host, port)
        return (
            ssl.create_default_context().wrap_socket(sock, server_hostname=host)
            if port != 80
            else sock
        )
