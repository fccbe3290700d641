# SPDX-License-Identifier: MIT
"""Figures: matplotlib without a window, plotly without a browser, Pillow images once.

A matplotlib figure is displayed at plt.show(), else at the end of its cell, and then closed. What
a cell has already displayed unchanged, or returns as its value, is not displayed again.
"""

import io
import os
import sys
import time
import weakref

from IPython.display import display
from traitlets import Any, Bool, Dict, Unicode
from traitlets.config.configurable import Configurable

from .afterimport import AfterImport

PLOTLY_MIME = "application/vnd.plotly.v1+json"


class InlineBackend(Configurable):
    """The settings that notebooks change by `%config InlineBackend.figure_format = 'retina'`."""

    figure_format = Unicode("").tag(config=True)
    figure_formats = Any(("png",)).tag(config=True)
    print_figure_kwargs = Dict({"bbox_inches": "tight"}).tag(config=True)
    close_figures = Bool(True).tag(config=True)
    rc = Dict({}).tag(config=True)

    def wants(self, kind: str) -> bool:
        """True where figures are to be drawn in this format."""
        formats = (self.figure_format,) if self.figure_format else self.figure_formats
        if isinstance(formats, str):
            formats = (formats,)
        aliases = {"retina": "png", "png2x": "png", "jpg": "jpeg"}
        return kind in {aliases.get(name, name) for name in formats}

    @property
    def scale(self) -> int:
        """How much finer than its own resolution a figure is drawn."""
        formats = self.figure_format or self.figure_formats
        return 2 if "retina" in formats or "png2x" in formats else 1


class Figures:
    """Knows which matplotlib figures are open and what has been displayed of them."""

    def __init__(self, shell, hooks: AfterImport):
        self._shell = shell
        self._settings = InlineBackend(parent=shell)
        shell.configurables.append(self._settings)
        self._shown = weakref.WeakKeyDictionary()  # figure: hash of the MIME map last displayed
        self._value = None  # the figure that is the cell's value
        os.environ.setdefault("MPLBACKEND", "agg")
        formatters = shell.display_formatter.formatters
        for mime, kind in (("image/png", "png"), ("image/jpeg", "jpeg"),
                           ("image/svg+xml", "svg"), ("application/pdf", "pdf")):
            formatters[mime].for_type_by_name(
                "matplotlib.figure", "Figure", lambda figure, kind=kind: self._draw(figure, kind))
        formatters["image/jpeg"].for_type_by_name("PIL.Image", "Image", lambda _image: None)
        hooks.add("matplotlib.backend_bases", self._adapt_matplotlib)
        hooks.add("plotly.io._renderers", _adapt_plotly)

    def formatted(self, thing, data: dict) -> None:
        """Remember what is about to be shown of a figure."""
        if is_figure(thing):
            self._shown[thing] = _hash(data)

    def is_value(self, thing) -> None:
        """The cell's value is shown as its result."""
        self._value = thing if is_figure(thing) else None

    def flush(self, deadline: float | None = None) -> None:
        """Display every open figure and close it; stop when the deadline is over.

        What an interrupt leaves undone is still open for the flush that follows it.
        """
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        failure = None
        managers = helpers.Gcf.get_all_fig_managers() if helpers else []
        for number, manager in enumerate(managers):
            if deadline is not None and time.monotonic() > deadline:
                self._shell.streams.complain(f"{len(managers) - number} figure(s) not drawn: "
                                             "no time was left after the interrupt\n")
                break
            try:
                self._show(manager)
            except Exception as error:
                failure = failure or error
        if helpers and self._settings.close_figures:
            helpers.Gcf.destroy_all()
        self._shown.clear()
        self._value = None
        if failure:
            raise failure

    def _show(self, manager) -> None:
        figure = manager.canvas.figure
        if figure is self._value:
            return
        before = self._shown.pop(figure, None)
        data, metadata = self._shell.display_formatter.format(figure)
        if data and _hash(data) != before:
            self._shell.display_pub.publish(data, metadata)
        if self._settings.close_figures:
            sys.modules["matplotlib._pylab_helpers"].Gcf.destroy(manager)
            self._shown.pop(figure, None)

    def _draw(self, figure, kind: str):
        if not self._settings.wants(kind):
            return None
        options = {"dpi": figure.dpi * self._settings.scale, **self._settings.print_figure_kwargs}
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, **options)
        data = buffer.getvalue()
        return data.decode() if kind == "svg" else data

    def _adapt_matplotlib(self, backend_bases) -> None:
        """plt.show() and figure.show() of every backend without a window display the figure."""
        figures = self

        def show(manager):
            figures._show(manager)

        backend_bases.FigureManagerBase.show = show


def is_figure(thing) -> bool:
    """True for a figure of matplotlib."""
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(thing, getattr(module, "Figure", ()))


def _hash(data: dict) -> int:
    return hash(tuple(sorted(data.items())))


def _adapt_plotly(renderers) -> None:
    """Show a plotly figure as JSON whatever renderer is asked for: there is no browser here.

    The notebook renderers would send megabytes of plotly.js, and plotly refuses to send the JSON
    where a package that only notebooks need is missing.
    """
    to_dict = renderers.validate_coerce_fig_to_dict
    encoder = renderers.PlotlyRenderer()

    def show(fig, renderer=None, validate=True, **kwargs):  # pylint: disable=unused-argument
        figure = to_dict(fig, validate)
        bundle = dict(encoder.to_mimebundle(figure))
        bundle["text/plain"] = _plotly_summary(bundle[PLOTLY_MIME])
        display(bundle, raw=True)

    renderers.show = show
    type(renderers.renderers)._activate_pending_renderers = lambda *_args, **_kwargs: None
    renderers.renderers.default = "plotly_mimetype"


def _plotly_summary(figure: dict) -> str:
    """One line for readers that cannot draw it."""
    kinds = [str(trace.get("type", "scatter")) for trace in figure.get("data", ())]
    title = figure.get("layout", {}).get("title") or ""
    title = title.get("text", "") if isinstance(title, dict) else title
    name = f' "{title}"' if title else ""
    return f"plotly figure{name}: {len(kinds)} trace(s) ({', '.join(kinds[:20])})"
