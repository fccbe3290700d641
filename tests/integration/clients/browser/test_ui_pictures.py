# SPDX-License-Identifier: MIT
"""Pictures of the page for the documentation, docs/ui-*.png: made where UI_PICTURES names a place.

`make screenshots` names docs. Look at them before they are committed.
"""

import os
from pathlib import Path

import fakemodel
import pytest
from webpage import expect

PLACE = os.environ.get("UI_PICTURES")
pytestmark = pytest.mark.skipif(not PLACE, reason="UI_PICTURES names no directory")

WINDOW = {"viewport": {"width": 1120, "height": 720}, "reduced_motion": "reduce"}
PHONE = {"viewport": {"width": 360, "height": 720}, "is_mobile": True, "has_touch": True,
         "device_scale_factor": 1.5, "reduced_motion": "reduce"}
LARGEST = 150_000

PENDULUM = """\
import numpy as np
import matplotlib.pyplot as plt

t = np.linspace(0, 10, 400)
plt.figure(figsize=(6, 2.4))
plt.plot(t, np.exp(-t / 4) * np.cos(3 * t))
plt.plot(t, np.exp(-t / 4), "--", t, -np.exp(-t / 4), "--", color="gray")
plt.xlabel("time in s")
plt.show()
print(f"half of it is lost after {4 * np.log(2):.2f} s")"""
TRAINING = """\
import time

for epoch in range(1, 1000):
    print(f"epoch {epoch:3d}  loss {1 / epoch:.4f}", flush=True)
    time.sleep(0.05)"""
FAILING = """\
import pandas as pd

table = pd.DataFrame({"town": ["Ulm", "Köln"], "number": [3, 5]})
table.groupby("twon").sum()"""
CODES = {"swing": PENDULUM, "train": TRAINING, "table": FAILING}
ANSWERS = {
    "swing": "The swing fades as $e^{-t/4}$, so **half of it is lost after 2.77 s**.",
    "train": "It is stopped.",
    "table": "There is no column `twon`: it is called `town`.",
    "say": "A session keeps its variables until it ends.",
}


def script(request):
    """What the model says to the questions of the pictures."""
    said = " ".join(m["text"] for m in request.messages if m["role"] == "user")
    asked = next((word for word in (*CODES, *ANSWERS) if word in said), "say")
    if "quota" in said:
        return {"status": 429, "message": "You exceeded your current quota."}
    if asked not in CODES:
        return {"text": ANSWERS[asked]}
    code = {"session_id": "$SESSION", "code": CODES[asked]}
    turns = [
        {"calls": [{"name": "create_session", "arguments": {"language": "python"}}]},
        {"reasoning": "I plot it together with its envelope.",
         "calls": [{"name": "execute_code", "arguments": code}]},
        {"text": ANSWERS[asked]},
    ]
    return turns[min(request.answers, 2)]


@pytest.fixture(scope="module")
def model():
    """The model of the pictures."""
    with fakemodel.FakeModel(script) as fake:
        yield fake


def take(tab, name):
    """Keep a picture of the window."""
    tab.page.mouse.move(1, 1)
    tab.page.evaluate("() => document.fonts.ready")
    file = Path(PLACE) / f"ui-{name}.png"
    tab.page.screenshot(path=file, animations="disabled", caret="hide")
    assert file.stat().st_size <= LARGEST, f"{file.name} has {file.stat().st_size} bytes"


def ask_for_a_plot(tab):
    """A conversation with a plot and a formula."""
    tab.say("How fast does the swing of this pendulum fade?")
    expect(tab.answered(1).locator("img")).to_be_visible()
    expect(tab.answers.last.locator(".katex")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_conversation(server_of, model, tab_of, scheme):
    tab = tab_of(server_of(model), color_scheme=scheme, **WINDOW).open()
    for other in ("What does a session keep?", "Say hello in Chinese: 你好"):
        tab.say(other)
        tab.answered(1)
        tab.open()
    ask_for_a_plot(tab)
    take(tab, scheme)


def test_phone(server_of, model, tab_of):
    tab = tab_of(server_of(model), color_scheme="light", **PHONE).open()
    ask_for_a_plot(tab)
    take(tab, "phone")


def test_empty(server_of, tab_of):
    tab = tab_of(server_of(), color_scheme="light", **WINDOW).open()
    expect(tab.button("Use direct mode")).to_be_visible()
    take(tab, "empty")


def test_busy(server_of, model, tab_of):
    tab = tab_of(server_of(model), color_scheme="light", **WINDOW).open()
    tab.say("Please train the network.")
    expect(tab.page.get_by_role("log")).to_contain_text("epoch  30")
    take(tab, "busy")
    tab.button("Stop").click()
    expect(tab.button("Stop")).to_have_count(0)


def test_error(server_of, model, tab_of):
    tab = tab_of(server_of(model), color_scheme="dark", **WINDOW).open()
    tab.allow("429")
    tab.say("Group the table by town.")
    tab.answered(1)
    tab.opened(tab.blocks().last)
    tab.say("And what of my quota?")
    expect(tab.page.get_by_role("alert")).to_be_visible()
    take(tab, "error")
