# SPDX-License-Identifier: MIT
"""A proxy on loopback that cuts connections in the middle of an answer.

    with CutProxy(server.url, [900, 2000]) as proxy:
        ...  # proxy.url: the first event stream ends after 900 bytes, the next after 2000

Only answers that are event streams are cut, without the end of their body: as a network does it.
`requests` lists what was asked: (method, path, headers).
"""

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class CutProxy:
    """The proxy; a context manager."""

    def __init__(self, url, cuts):
        address = urlsplit(url)
        self.target, self.cuts = (address.hostname, address.port), list(cuts)
        self.requests, self.cut_count = [], 0
        self._lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in (self.listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
                self._sockets += [client, server]
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()
                threading.Thread(target=self._down, args=(client, server), daemon=True).start()

    def _up(self, client, server):
        """What is asked goes on, for the server's own Host; its heads are noted."""
        ours, theirs = (urlsplit(self.url).netloc.encode(), "{}:{}".format(*self.target).encode())
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                data = data.replace(ours, theirs, 1)
                head, found, _ = data.partition(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                if found and first.endswith("HTTP/1.1"):
                    pairs = (line.partition(": ") for line in lines)
                    headers = {name.lower(): value for name, _, value in pairs}
                    self.requests.append((*first.split(" ")[:2], headers))
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)

    def _down(self, client, server):
        """What is answered, up to where it is cut."""
        left = None
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if left is None and b"text/event-stream" in data.partition(b"\r\n\r\n")[0]:
                    with self._lock:
                        left = self.cuts.pop(0) if self.cuts else None
                if left is not None and len(data) >= left:
                    client.sendall(data[:left])
                    self.cut_count += 1
                    break
                client.sendall(data)
                left = None if left is None else left - len(data)
        for sock in (client, server):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
