# SPDX-License-Identifier: MIT
"""The IPython shell of the kernel.

IPython runs the cells, but nothing it has to say about them goes to the standard streams: values,
displays and errors are collected here and sent as frames. Its two traps (sys.displayhook and the
extra builtins) are entered once at start and never left, so that an interrupt in the wrong place
cannot leave them half set.
"""

import asyncio
import codeop
import inspect
import os
import subprocess
import sys

from .lean import import_ipython

import_ipython()

from IPython.core import interactiveshell
from IPython.core.autocall import ExitAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.formatters import DisplayFormatter
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from IPython.utils.process import arg_split
from traitlets import observe

from .afterimport import AfterImport
from .channel import K_DISPLAY, Channel
from .loop import Loop
from .payload import bundle_encode, object_encode, traceback_text
from .plots import Figures, is_figure
from .streams import Streams

HISTORY_KEPT = 100
BASIC_TYPES = (int, float, str, bool, bytes, list, tuple, dict, set)
# What tracebacks do not show; codeop is in the way of errors that only compiling finds.
HIDDEN = (os.path.dirname(__file__) + "/", codeop.__file__,
          os.path.dirname(os.path.dirname(interactiveshell.__file__)) + "/")


class NoAnswer(StdinNotImplementedError, EOFError):
    """input() where nobody can answer; an EOFError, as a script with an empty stdin would get."""


# Shown under the name that code written for notebooks knows.
NoAnswer.__name__ = NoAnswer.__qualname__ = StdinNotImplementedError.__name__
NoAnswer.__module__ = StdinNotImplementedError.__module__


class Exit(ExitAutocall):
    """exit and quit, with or without parentheses: SystemExit, which ends only the cell."""

    def __call__(self, code=None):
        raise SystemExit(code)


class Profile(ProfileDir):
    """A profile directory that is never made: nothing of the shell is kept in files."""

    @observe("location")
    def _location_changed(self, change):
        pass

    def check_dirs(self):
        """Make no directories."""


class Compiler(CachingCompiler):
    """Names the code of cells `<cell N>`, which is what tracebacks show."""

    def __init__(self):
        super().__init__()
        self._uses = {}

    def get_code_name(self, raw_code, transformed_code, number):
        """A name that no earlier code has, so that its lines stay in the line cache."""
        use = self._uses[number] = self._uses.get(number, 0) + 1
        return f"<cell {number}>" if use == 1 else f"<cell {number}.{use}>"


class History(HistoryManager):
    """The inputs of the last cells, in memory only."""

    def store_inputs(self, line_num, source, source_raw=None):
        """Remember one input; old ones become empty, so that the numbers stay right."""
        for entries, text in ((self.input_hist_parsed, source),
                              (self.input_hist_raw, source_raw or source)):
            entries.append(text.rstrip("\n"))
            if len(entries) > HISTORY_KEPT:
                entries[-HISTORY_KEPT - 1] = ""


class Formatter(DisplayFormatter):
    """Collects what fails while it formats, and tells figures what has been drawn."""

    def format(self, obj, include=None, exclude=None):
        """The MIME map of a value. A broken _repr_ costs its own entry, but a figure is all."""
        shell = self.parent
        outer, shell.format_errors = shell.format_errors, []
        try:
            if include is None and exclude is None and self._is_basic(type(obj)):
                text = self.formatters["text/plain"](obj)
                data, metadata = ({} if text is None else {"text/plain": text}), {}
            else:
                data, metadata = super().format(obj, include, exclude)
            failures = shell.format_errors
        finally:
            shell.format_errors = outer
        if failures and (not data or is_figure(obj)):
            raise failures[0]
        for failure in failures:
            shell.streams.complain(traceback_text(failure, HIDDEN))
        shell.figures.formatted(obj, data)
        return data, metadata

    def _is_basic(self, kind: type) -> bool:
        """True for builtin types that have only a text; asking ten formatters costs 0.2 ms."""
        if kind not in BASIC_TYPES:
            return False
        others = (formatter for mime, formatter in self.formatters.items() if mime != "text/plain")
        return not any(kind in formatter.type_printers for formatter in
                       (self.ipython_display_formatter, self.mimebundle_formatter, *others))


class Publisher(DisplayPublisher):
    """Sends displays as frames."""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
        """Send a display; where no frame can be sent, print its text."""
        self._validate_data(data, metadata)
        body = bundle_encode(data, metadata)
        self.shell.streams.flush()
        if not self.shell.channel.barrier(K_DISPLAY, body) and "text/plain" in data:
            print(data["text/plain"])

    def clear_output(self, wait=False):
        """What was displayed stays."""


class Hook(DisplayHook):
    """sys.displayhook: keeps the value of the cell until its end."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.awaitable = None
        self.value = None  # data and metadata of the cell's value

    def __call__(self, result=None):
        if result is None:
            return
        if inspect.isawaitable(result):
            self.awaitable = result
        else:
            self.show(result)

    def show(self, result):
        """Format a value and keep it; the one before becomes a display."""
        if result is None or self.quiet():
            return
        self.check_for_underscore()
        data, metadata = self.shell.display_formatter.format(result)
        self.update_user_ns(result)
        self.fill_exec_result(result)
        if not data:
            return
        if self.value:
            self.shell.display_pub.publish(*self.value)
        self.value = (data, metadata)
        self.shell.figures.is_value(result)

    def quiet(self):
        """True where the cell ends in a semicolon."""
        last = self.shell.source.rstrip().rpartition("\n")[2]
        return ";" in last and self.semicolon_at_end_of_expression(self.shell.source)

    def cull_cache(self):
        """Forget the oldest values without a word."""
        values = self.shell.user_ns["_oh"]
        for number in sorted(values)[: max(1, len(values) - 2)]:
            del values[number]
            self.shell.user_ns.pop(f"_{number}", None)
            self.shell.user_ns_hidden.pop(f"_{number}", None)


class Shell(InteractiveShell):
    """Runs cells, and keeps for the kernel how each one ended."""

    compiler_class = Compiler
    display_pub_class = Publisher
    displayhook_class = Hook

    def __init__(self, channel: Channel, streams: Streams, loop: Loop):
        self.channel = channel
        self.streams = streams
        self.loop = loop
        self.error: BaseException | None = None
        self.source = ""
        self.format_errors: list[BaseException] | None = None
        interactiveshell.PickleShareDB = lambda _path: {}
        # Few old values are kept: they may be large, and the memory of a session is limited.
        super().__init__(colors="NoColor", cache_size=3, loop_runner=loop.run, exiter=Exit())
        hooks = AfterImport()
        self.figures = Figures(self, hooks)
        hooks.add("getpass", self._adapt_getpass)
        self._adapt_scripts()
        self.set_hook("show_in_pager", _page_print, 0)
        self.builtin_trap.__enter__()
        self.display_trap.__enter__()

    def begin(self, source: str) -> None:
        """A new cell."""
        self.error = None
        self.source = source
        self.displayhook.awaitable = self.displayhook.value = self.displayhook.exec_result = None
        sys.displayhook = self.displayhook

    def record_error(self, error: BaseException) -> None:
        """The cell failed with `error`; what it failed with before is printed."""
        before, self.error = self.error, error
        if isinstance(before, KeyboardInterrupt) and isinstance(error, asyncio.CancelledError):
            # An interrupt of an await: only the cancelled task knows the line.
            self.error = before.with_traceback(error.__traceback__)
        elif isinstance(before, KeyboardInterrupt) and isinstance(error, KeyboardInterrupt):
            self.error = before
        elif before is not None and before is not error:
            self.streams.complain(traceback_text(before, HIDDEN))
        error = self.error
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__

    async def run_code(self, code_obj, result=None, *, async_=False):
        """Run one statement of a cell; True if it failed."""
        try:
            if async_:
                await eval(code_obj, self.user_global_ns, self.user_ns)
            else:
                exec(code_obj, self.user_global_ns, self.user_ns)
            await self._settle()
        except GeneratorExit:
            raise
        except BaseException as error:
            if result is not None:
                result.error_in_exec = error
            self.record_error(error)
            return True
        return False

    async def _settle(self) -> None:
        """Await the cell's value where it can be awaited, and show what comes out."""
        value, self.displayhook.awaitable = self.displayhook.awaitable, None
        if value is None:
            return
        if asyncio._get_running_loop() is not None:
            value = await value
        else:
            value = self.loop.run(_await(value))
        self.displayhook.show(value)

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        """Record what IPython or a magic would print; `%tb` prints the last one again."""
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if error is None:
            error = getattr(sys, "last_value", None)
            print("No traceback" if error is None else traceback_text(error, HIDDEN), end="")
        elif self.format_errors is not None:
            self.format_errors.append(error)
        else:
            self.record_error(error)

    def showsyntaxerror(self, filename=None, running_compiled_code=False):
        """Record a syntax error."""
        self.showtraceback()

    def system(self, cmd):
        """`!cmd`: run it with the kernel's own output pipes, so that it comes live and in order."""
        cmd = self.var_expand(cmd, depth=1)
        self.streams.flush()
        executable = os.environ.get("SHELL") or None
        self.user_ns["_exit_code"] = subprocess.call(cmd, shell=True, executable=executable)

    system_raw = system_piped = system

    def ask_exit(self):
        """Leave the cell; the kernel stays."""
        raise SystemExit

    def enable_gui(self, gui=None):
        """There are no windows."""

    def enable_matplotlib(self, gui=None):
        """`%matplotlib anything`: figures are displayed inline whatever is asked for."""
        return "inline", "inline"

    def input(self, prompt=""):
        """The builtin input(), answered by the client."""
        line = self.streams.replaced_input(prompt)
        return self._ask(prompt, False, "input()") if line is None else line

    def getpass(self, prompt="Password: ", stream=None, **_options):
        """getpass.getpass(), answered by the client."""
        return self._ask(prompt, True, "getpass()")

    def _ask(self, prompt, password: bool, name: str) -> str:
        self.streams.flush()
        line = self.channel.ask(object_encode({"prompt": str(prompt), "password": password}))
        if line is None:
            raise NoAnswer(f"{name} was called, but nobody can answer it in this run")
        return line

    def _adapt_getpass(self, module) -> None:
        module.getpass = self.getpass

    def _adapt_scripts(self) -> None:
        """`%%bash` and its kin print live, with whole characters, unless they are captured."""
        magics = self.magics_manager.registry["ScriptMagics"]
        original = magics.shebang

        def shebang(line, cell):
            args, command = original.parser.parse_known_args(arg_split(line, posix=True))
            if args.out or args.err or args.bg or args.proc or not command:
                return original(line, cell)
            self.streams.flush()
            _run_script(command, cell, args.raise_error)

        shebang.parser = original.parser
        magics.shebang = self.magics_manager.magics["cell"]["script"] = shebang

    # What IPython prepares at its start

    def init_profile_dir(self, profile_dir):
        self.profile_dir = Profile(location=os.path.join(self.ipython_dir, "profile_default"))

    def init_ipython_dir(self, ipython_dir):
        self.set_trait("ipython_dir", "")

    def init_history(self):
        self.history_manager = History(shell=self, parent=self, enabled=False,
                                       hist_file=":memory:")
        self.configurables.append(self.history_manager)

    def init_completer(self):
        self.Completer = None

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_user_ns(self):
        super().init_user_ns()
        self.user_ns.pop("open", None)  # IPython's own refuses fd 0, 1 and 2
        self.user_ns_hidden.pop("open", None)
        for name in ("__spec__", "__loader__", "__package__"):  # gone after %reset
            self.user_ns.setdefault(name, None)

    def init_builtins(self):
        super().init_builtins()
        self.builtin_trap.auto_builtins = {"get_ipython": self.get_ipython, "exit": self.exiter,
                                           "quit": self.exiter, "input": self.input}


async def _await(value):
    return await value


def _page_print(_shell, data, *_args, **_kwargs) -> None:
    """What IPython would show in a pager."""
    print(data.get("text/plain", "") if isinstance(data, dict) else data)


def _run_script(command: list[str], cell: str, raise_error: bool) -> None:
    try:
        done = subprocess.run(command, input=cell.encode("utf-8", "surrogateescape"), check=False)
    except FileNotFoundError:
        print(f"Couldn't find program: {command[0]!r}", file=sys.stderr)
        return
    if done.returncode and raise_error:
        raise subprocess.CalledProcessError(done.returncode, command)
