# SPDX-License-Identifier: MIT
"""A package index on loopback with packages that a test makes: for pip, npm and R at once.

    with Registry() as registry:
        registry.pip("probe", hook="id")
        settings = registry.settings()      # SANDBOX_PIP_INDEX and so on, as environment

A package may have a hook, a line of shell that runs while it is installed, the way each installer
allows: pip's build backend, npm's postinstall, R's configure. Files that go along lie in the
directory in which the hook runs.
"""

import base64
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
import zipfile

HOST = "host.sandbox.internal"

BACKEND = """
import os, subprocess, zipfile

def build_wheel(directory, config_settings=None, metadata_directory=None):
    subprocess.run(["sh", "-c", {hook!r}], check={check})
    name = "{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        for path, text in {files!r}.items():
            wheel.writestr(path, text)
    return name
"""


def tar(files):
    """A .tar.gz of {path: bytes}; what begins with #! or the magic of ELF can be executed."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            info.mode = 0o755 if data[:2] == b"#!" or data[:4] == b"\x7fELF" else 0o644
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def wheel_files(name, version, module="found = True\n"):
    """What is in a wheel of one module."""
    info = f"{name}-{version}.dist-info"
    return {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/RECORD": "",
    }


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves what the registry holds; a page may also be a function that gets the handler."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """Any GET."""
        registry = self.server.registry
        path = self.path.partition("?")[0]
        registry.asked.append(path)
        page = registry.pages.get(path, registry.pages.get(path.rstrip("/") + "/"))
        if callable(page):
            page(self)
            return
        self.send_response(200 if page else 404)
        kind, body = page or ("text/plain", b"no such page\n")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        """Nothing."""


class Registry:
    """The index: `pages` maps paths to (type, bytes), `asked` lists the paths that were wanted."""

    def __init__(self):
        self.pages, self.asked, self._r = {}, [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.registry = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def url(self, path="", host=HOST):
        """The address of a page as a sandbox sees it."""
        return f"http://{host}:{self.port}/{path}"

    def settings(self):
        """The settings that make sandboxes use this index."""
        return {
            "SANDBOX_PIP_INDEX": self.url("pip/"),
            "SANDBOX_NPM_REGISTRY": self.url("npm/"),
            "SANDBOX_CRAN": self.url("r"),
        }

    def add(self, path, data, kind="application/octet-stream"):
        """Serve bytes."""
        self.pages["/" + path] = (kind, data)

    # pip

    def _pip_links(self, name, file):
        self.add(f"pip/{name}/", f'<a href="/files/{file}">{file}</a>\n'.encode(), "text/html")

    def pip(self, name, version="1.0", hook="true", files=None, check=True):
        """A source package whose build runs the hook, and which pip builds without more."""
        top = f"{name}-{version}"
        backend = BACKEND.format(
            hook=hook, check=check, name=name, version=version, files=wheel_files(name, version)
        )
        project = (
            f'[build-system]\nrequires = []\nbuild-backend = "backend"\n'
            f'backend-path = ["."]\n[project]\nname = "{name}"\nversion = "{version}"\n'
        )
        self.add(
            f"files/{top}.tar.gz",
            tar(
                {
                    f"{top}/pyproject.toml": project.encode(),
                    f"{top}/backend.py": backend.encode(),
                    f"{top}/PKG-INFO": wheel_files(name, version)[
                        f"{top}.dist-info/METADATA"
                    ].encode(),
                    **{f"{top}/{path}": data for path, data in (files or {}).items()},
                }
            ),
        )
        self._pip_links(name, f"{top}.tar.gz")

    def wheel(self, name, version="1.0", module="found = True\n"):
        """A ready package of one module."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for path, text in wheel_files(name, version, module).items():
                archive.writestr(path, text)
        file = f"{name}-{version}-py3-none-any.whl"
        self.add(f"files/{file}", out.getvalue())
        self._pip_links(name, file)

    def endless_wheel(self, name, size, version="1.0"):
        """A wheel of so many zero bytes."""

        def page(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(size))
            handler.end_headers()
            for _ in range(0, size if handler.command == "GET" else 0, 1 << 16):
                try:
                    handler.wfile.write(bytes(1 << 16))
                except OSError:
                    break
            handler.close_connection = True

        file = f"{name}-{version}-py3-none-any.whl"
        self.pages[f"/files/{file}"] = page
        self._pip_links(name, file)

    # npm

    def npm(self, name, version="1.0.0", hook=None, files=None):
        """A package whose postinstall is the hook."""
        package = {"name": name, "version": version, "main": "index.js"}
        if hook:
            package["scripts"] = {"postinstall": hook}
        data = tar(
            {
                "package/package.json": json.dumps(package).encode(),
                "package/index.js": b"module.exports = { found: true };\n",
                **{f"package/{path}": body for path, body in (files or {}).items()},
            }
        )
        path = f"npm/{name}/-/{name}-{version}.tgz"  # npm takes it from below its registry only
        self.add(path, data)
        dist = {
            "tarball": self.url(path),
            "shasum": hashlib.sha1(data).hexdigest(),
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode(),
        }
        entry = {**package, "dist": dist, "hasInstallScript": bool(hook)}
        self.add(
            f"npm/{name}",
            json.dumps(
                {"name": name, "dist-tags": {"latest": version}, "versions": {version: entry}}
            ).encode(),
            "application/json",
        )

    # R

    def r(self, name, version="1.0", hook=None, code="found <- function() TRUE\n", files=None):
        """A source package whose configure runs the hook."""
        description = (
            f"Package: {name}\nVersion: {version}\nTitle: Test\nDescription: A test.\n"
            "License: MIT\nAuthor: Nobody\nMaintainer: Nobody <no@body.test>\n"
        )
        content = {
            f"{name}/DESCRIPTION": description.encode(),
            f"{name}/R/{name}.R": code.encode(),
            f"{name}/NAMESPACE": b'exportPattern("^[a-z]")\n',
            **{f"{name}/{path}": body for path, body in (files or {}).items()},
        }
        if hook:
            content[f"{name}/configure"] = f"#!/bin/sh\n{hook}\n".encode()
        data = tar(content)
        self.add(f"r/src/contrib/{name}_{version}.tar.gz", data)
        self._r.append(
            f"Package: {name}\nVersion: {version}\nLicense: MIT\n"
            f"MD5sum: {hashlib.md5(data).hexdigest()}\nNeedsCompilation: no\n"
        )
        index = "\n".join(self._r).encode()
        self.add("r/src/contrib/PACKAGES", index, "text/plain")
        self.add("r/src/contrib/PACKAGES.gz", gzip.compress(index))
