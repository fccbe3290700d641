# SPDX-License-Identifier: MIT
"""A program at a port that says it is a server of ours, and notes what it is told."""

import os
import subprocess
import sys


class Impostor:
    """A program that answers at a port like a server of ours, and may be another user's.

    What it was asked is in `asked` at the end, with the key that came along.
    """

    PROGRAM = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("x-api-key"), flush=True)
        if self.path == "/info" and sys.argv[1] == "shy":
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"name": "sandbox-agent"}')
    do_POST = do_PUT = do_PATCH = do_GET
os.setuid(int(sys.argv[2]))
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

    def __init__(self, kind, user=0):
        """Start it; `shy` answers nothing at /info."""
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, kind, str(user or os.geteuid())],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        self.asked = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.asked = self.process.stdout.read().splitlines()
        self.process.wait(30)
