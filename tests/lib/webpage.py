# SPDX-License-Identifier: MIT
"""The page of `sandbox-agent api` in a real browser: Debian's Chromium, driven by Playwright.

    with webpage.chromium() as browser:
        tab = webpage.Tab(browser, server.url)
        tab.open()
        tab.say("print(1)")               # in the composer, sent by Enter
        tab.answered(1)                   # waits until the first answer is complete
        tab.page                          # Playwright's page, for all else
        tab.close()                       # asserts that nothing went wrong unseen

Nothing waits for a time: `expect` and `until` look again until what is awaited is there. A tab
notes each request to a place that is not the server's, each violation of the page's policy, and
each error that the page or the browser reports; `close` asserts that there were none but those that
the test has announced by `allow`.
"""

import contextlib
import functools
import http.server
import importlib
import os
import re
import sys
import threading
import time

import foreign

TIMEOUT_MS = 30_000
PROGRAM = "/usr/bin/chromium"
HOSTS = ("MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, "
         "EXCLUDE 127.0.0.1, EXCLUDE 0.0.0.0, EXCLUDE localhost")
LOOPBACK = "local-network-access"
LOCAL_SCHEMES = ("data:", "blob:", "about:", "chrome-error:")
AXE = foreign.ROOT / "build/axe/node_modules/axe-core/axe.min.js"


@functools.cache
def playwright():
    """Playwright's module, which is brought when a test asks for it."""
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sys.path.append(str(foreign.environment("browser") / "lib" / python / "site-packages"))
    module = importlib.import_module("playwright.sync_api")
    module.expect.set_options(timeout=TIMEOUT_MS)
    return module


def expect(actual):
    """Playwright's assertions, which wait: expect(locator).to_be_visible()."""
    return playwright().expect(actual)


# Violations are reported to the document they happen in; frames have their own, which are a part
# of the test that looks for them.
WATCH = """
document.addEventListener("securitypolicyviolation", (event) => {
  if (window.top === window)
    console.error(`policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


@contextlib.contextmanager
def chromium():
    """Run the browser. It finds no host but this one, which is also evil.test; for root it has no
    sandbox of its own.
    """
    words = ["--disable-dev-shm-usage", "--no-proxy-server", "--disable-gpu",
             f"--host-resolver-rules={HOSTS}"]
    if os.geteuid() == 0:
        words.append("--no-sandbox")
    with playwright().sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=PROGRAM, args=words)
        yield browser
        browser.close()


def until(condition, what, timeout=TIMEOUT_MS / 1000):
    """Ask until the answer is true; return it."""
    end = time.monotonic() + timeout
    while not (result := condition()):
        assert time.monotonic() < end, f"not in {timeout} s: {what}"
        time.sleep(0.05)
    return result


class Elsewhere:
    """Another origin of this host; `requests` are the (method, path) that were asked of it."""

    def __init__(self, pages=None):
        """Serve the given pages, each a path and its HTML; all else is an empty success."""
        self.requests, noted, shown = [], self, pages or {}

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers everything, and lets every page read it."""

            def answer(self):
                """Note it."""
                noted.requests.append((self.command, self.path))
                body = shown.get(self.path, "").encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Access-Control-Allow-Origin", "*")
                self.send_header("Access-Control-Allow-Headers", "*")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = answer

            def log_message(self, *_):
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Tab:
    """A page of the server in a context of its own, and what was noted about it."""

    def __init__(self, browser, url, *, context=None, **options):
        """Make it; `context` is that of another tab, whose storage it shares."""
        self.url, self.foreign, self.complaints, self.allowed = url, [], [], []
        self.requests, self.owns_context = [], context is None
        self.is_phone = options.get("is_mobile", False)
        options = {"locale": "en-US", "viewport": {"width": 1280, "height": 800}} | options
        self.context = context or browser.new_context(**options)
        self.context.set_default_timeout(TIMEOUT_MS)
        # What a newer browser forbids by itself is allowed: the page has to be safe in all of them.
        self.context.grant_permissions([LOOPBACK])
        self.page = self.context.new_page()
        self.page.add_init_script(WATCH)
        self.page.on("request", self._request)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"page: {error}"))

    def _request(self, request):
        self.requests.append(request)
        if not request.url.startswith((self.url + "/", *LOCAL_SCHEMES)):
            self.foreign.append(request.url)

    def _console(self, message):
        if message.type == "error":
            where = message.location.get("url", "")
            self.complaints.append(f"console: {message.text} ({where})")

    def allow(self, *patterns):
        """Announce errors that belong to a test."""
        self.allowed += patterns

    def check(self):
        """Assert that nothing went wrong so far."""
        assert not self.foreign, self.foreign
        rest = [c for c in self.complaints if not any(re.search(p, c) for p in self.allowed)]
        assert not rest, "\n".join(rest)

    def close(self, check=True):
        """End it."""
        self.page.close()
        if self.owns_context:
            self.context.close()
        if check:
            self.check()

    # ---- the usual

    def open(self, path="/"):
        """Go to the page, and wait until one can write."""
        self.page.goto(self.url + path)
        expect(self.composer).to_be_visible()
        return self

    @property
    def composer(self):
        """Where messages are written."""
        return self.page.locator("#composer")

    def button(self, name, **options):
        """A button by its whole name."""
        return self.page.get_by_role("button", name=name, exact=True, **options)

    def type(self, text):
        """Write a message without sending it."""
        expect(self.composer).to_be_enabled()
        self.composer.fill(text)

    def say(self, text):
        """Send a message; on a phone, where Enter is a new line, by its button."""
        self.type(text)
        expect(self.button("Send")).to_be_enabled()
        if self.is_phone:
            self.button("Send").click()
        else:
            self.composer.press("Enter")
        expect(self.composer).to_have_value("")

    def _entries(self, who):
        heading = self.page.get_by_role("heading", name=who, exact=True)
        return self.page.get_by_role("article").filter(has=heading)

    @property
    def answers(self):
        """The answers, each with all its steps."""
        return self._entries("Agent")

    @property
    def sayings(self):
        """What the person said."""
        return self._entries("You")

    @property
    def thread(self):
        """The id of the conversation that is open, from the address."""
        found = re.search(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", self.page.url)
        return found and found.group()

    def answered(self, count):
        """Wait until so many answers are there and the last is complete; return that."""
        expect(self.answers).to_have_count(count)
        last = self.answers.last
        expect(last.get_by_role("button", name="Copy", exact=True).last).to_be_visible()
        expect(self.button("Stop")).to_have_count(0)
        return last

    def blocks(self, title="Run code"):
        """The blocks of calls, by the title of their tool."""
        return self.page.locator(f'section:has(> button[aria-expanded]:has-text("{title}"))')

    def opened(self, block):
        """Open a block if it is closed; return it."""
        head = block.locator("> button[aria-expanded]")
        if head.get_attribute("aria-expanded") == "false":
            head.click()
        expect(head).to_have_attribute("aria-expanded", "true")
        return block

    def settings(self, tab="Model"):
        """Open the settings at a tab; return the dialog."""
        dialog = self.page.get_by_role("dialog", name="Settings")
        if dialog.count() == 0:
            self.button("Settings").first.click()
        dialog.get_by_role("tab", name=tab).click()
        return dialog

    def axe(self):
        """What axe finds that is serious: a list of texts, empty when all is well."""
        if not self.page.evaluate("() => 'axe' in window"):
            # The page's policy allows no script from elsewhere, so it comes by the debugger's way.
            self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("""() => axe.run(document, {
            resultTypes: ["violations"], iframes: false}).then(({violations}) => violations
            .filter((v) => v.impact === "serious" || v.impact === "critical")
            .map((v) => [v.id, v.help, ...v.nodes.map((n) => n.html + " " + n.failureSummary)]))""")
        return ["\n  ".join(lines) for lines in found]
