# SPDX-License-Identifier: MIT
"""The first visit: no model, direct mode by one click, code, and its plot."""

from webpage import expect

PLOT = """\
import matplotlib.pyplot as plt
plt.plot([1, 4, 9, 16])
plt.title("squares")
plt.show()
"""


def test_first_visit_to_a_plot(server_of, tab_of):
    bare = server_of()  # nobody has told it about a model
    tab = tab_of(bare).open()
    expect(tab.page.get_by_role("heading", name="No model is connected yet")).to_be_visible()
    tab.button("Use direct mode").click()
    expect(tab.page.get_by_role("heading", name="Write code, see it run")).to_be_visible()
    assert bare.get("/settings").json["chatModelProvider"] == "direct"
    tab.say(PLOT)
    answer = tab.answered(1)
    image = answer.get_by_role("img").first
    expect(image).to_be_visible()
    size = image.evaluate("(i) => i.decode().then(() => [i.naturalWidth, i.naturalHeight])")
    assert min(size) > 100, size
    assert bare.messages(tab.thread)[0]["content"] == PLOT
