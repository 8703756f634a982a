"""A line on the terminal for what takes longer than a second."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .tables import printable

_DELAY_S = 1.0
_PERIOD_S = 0.2
_ERASE = "\r\x1b[K"


@contextmanager
def working(title: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is going on and for how long, on standard error where that is a terminal, until the block ends.

    Args:
        title: What is going on, such as ``compiling model.onnx``.
        quiet: Show nothing.

    Yields:
        A function that takes what the work has come to.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    latest = [""]
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(title, latest, done), daemon=True)
    thread.start()
    try:
        yield lambda message: latest.__setitem__(0, f": {message}")
    finally:
        done.set()
        thread.join()


def _show(title: str, latest: list[str], done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(_DELAY_S):
        return
    while not done.wait(_PERIOD_S):
        sys.stderr.write(_ERASE + _line(f"{title}{latest[0]}", f" ({time.monotonic() - start:.0f} s)"))
        sys.stderr.flush()
    sys.stderr.write(_ERASE)
    sys.stderr.flush()


def _line(text: str, end: str) -> str:
    """Return what fits into one row of the terminal: one that went on in the next row could not be erased."""
    room = shutil.get_terminal_size().columns - 1 - len(end)
    text = printable(" ".join(text.split()))
    return (text if len(text) <= room else f"{text[: max(0, room - 3)]}...") + end
