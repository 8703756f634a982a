"""What is nobody's business: names of the user and the machine, and where files lie outside the system's folders."""

from __future__ import annotations

import os
import platform
import pwd
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[3]
_OWN_WORDS = frozenset({"amd", "gpu", "hip", "host", "rocm", "test", "user", "localhost"})
"""Of the report itself: accounts and machines with such a name are nobody's."""
_NAMES = ("repository", "python", "tmp", "home", "path", "machine", "user")
"""What stands for what is private, in angle brackets."""
_ANSI = re.compile(r"(?:\x1b|\\x1b|\\u001b|\\033|\\e)(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\))")
"""Colours and titles of a terminal, also as ``repr`` writes them."""
_ESCAPED = r"(?<=\\[nrt])"
"""After the end of a line, as ``repr`` writes it."""
_OPTION = r"-(?:[A-Za-z]|i[a-z]+)"
"""Of a compiler, with its path right behind it."""
_ROOT = r"(?<!http:)(?<!https:)/+(?!(?:opt|usr|lib|lib64|dev|sys|proc|etc)(?![\w.+@~-]))(?=[\w.+@~%${-])"
"""The slashes that a path begins with, in none of the system's folders."""
_QUOTED = re.compile(
    rf"(?:(?<!\w)|{_ESCAPED}|(?<=\b[bruf]))(?P<before>(?P<quote>['\"`])(?:{_OPTION}|[\w-]+[=:])?)"
    rf"{_ROOT}(?P<path>[^\n]*?)(?P<after>(?P=quote)|(?= \.\.\.))"
)
"""A path with spaces, up to the other quote or to where a text is cut."""
_BARE = re.compile(
    rf"(?P<before>(?<![\w-]){_OPTION}|{_ESCAPED}|(?<![\w./-]){''.join(f'(?<!<{name}>)' for name in _NAMES)})"
    rf"{_ROOT}(?P<path>(?:(?:\\ |[^\s/'\"`:;,|<>\\])+/+)*(?:\\ |[\w.+@~%=#-])*)(?P<after>)"
)
_QUOTIENT = frozenset("<>()[]{}*?")
"""Before a slash and one name these make no path: a tag, a pattern, a quotient."""


class Private:
    """Replaces private words and paths in texts."""

    def __init__(self) -> None:
        self._places = dict(sorted(_places(), key=lambda place: -len(place[0])))
        self._words = {word: name for word, name in _words() if word.lower() not in _OWN_WORDS}

    def without(self, text: str) -> str:
        """The text without them, and without colours."""
        text = _ANSI.sub("", text)
        for place, name in self._places.items():
            text = re.sub(rf"{re.escape(place)}(?![\w-])", name, text)
        text = _BARE.sub(_last_part, _QUOTED.sub(_last_part, text))
        for word, name in self._words.items():
            text = re.sub(
                rf"(?:(?<![A-Za-z0-9])|{_ESCAPED}){re.escape(word)}(?![A-Za-z0-9])", name, text, flags=re.IGNORECASE
            )
        return text

    def within(self, value: Any) -> Any:
        """The same with each text in it, at any depth, without them. It is for what is not yet JSON, whose texts have other letters."""
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, Mapping):
            return {self.within(key): self.within(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.within, value))
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{field.name: self.within(getattr(value, field.name)) for field in fields(value)})
        return value


def _last_part(found: re.Match[str]) -> str:
    """The path's last part, where it has several: one alone is where the machine keeps its data."""
    _, slash, last = found["path"].rpartition("/")
    before = found.string[max(found.start() - 1, 0) : found.start()]
    if not slash and (len(last) < 2 or last[0].isdigit() or before in _QUOTIENT):
        return found[0]
    return f"{found['before']}<path>{slash and '/'}{last if slash else ''}{found['after']}"


def _account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:  # a container's user need not have an entry
        return None


def _places() -> Iterator[tuple[str, str]]:
    account = _account()
    homes = {os.environ.get("HOME", ""), account.pw_dir if account else ""}
    places = {"<repository>": [str(REPOSITORY), str(Path.cwd())], "<python>": [sys.prefix, sys.base_prefix]}
    places |= {"<tmp>": [tempfile.gettempdir()], "<home>": [*homes]}
    for name, paths in places.items():
        for path in paths:
            for form in {path, os.path.realpath(path)} if path else ():
                # The system's own Python and the root folder say nothing.
                if len(Path(form).parts) > 1 and form not in ("/usr", "/usr/local"):
                    yield form, name


def _words() -> Iterator[tuple[str, str]]:
    account = _account()
    users = {os.environ.get(name, "") for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "SUDO_USER")}
    users |= {account.pw_name, account.pw_gecos.split(",")[0]} if account else set()
    hosts = {socket.gethostname(), platform.node(), os.environ.get("HOSTNAME", "")}
    hosts |= {host.partition(".")[0] for host in hosts}
    for words, name in ((hosts, "<machine>"), (users, "<user>")):
        for word in sorted(words - {""}, key=len, reverse=True):
            yield word, name
