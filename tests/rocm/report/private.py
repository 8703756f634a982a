"""What is nobody's business: names of the user and the machine, and where files lie outside the system's folders."""

from __future__ import annotations

import getpass
import os
import platform
import pwd
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
_OWN_WORDS = frozenset({"amd", "gpu", "hip", "host", "rocm", "test", "user", "localhost"})
"""Of the report itself: accounts and machines with such a name are nobody's."""
_ELSEWHERE = re.compile(r"(?<![\w.<>/-])/(?!(?:opt|usr|lib|lib64|dev|sys|proc|etc)/)(?:[\w.+@~-]+/)+([\w.+@~-]*)")
"""A path that begins in none of the system's folders."""


class Private:
    """Replaces private words and paths in texts."""

    def __init__(self) -> None:
        self._places = dict(sorted(_places(), key=lambda place: -len(place[0])))
        self._words = {word: name for word, name in _words() if word.lower() not in _OWN_WORDS}

    def without(self, text: str) -> str:
        """The text without them."""
        for place, name in self._places.items():
            text = re.sub(rf"{re.escape(place)}(?![\w-])", name, text)
        text = _ELSEWHERE.sub(r"<path>/\1", text)
        for word, name in self._words.items():
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])", name, text, flags=re.IGNORECASE)
        return text


def _account() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(os.getuid())
    except KeyError:  # a container's user need not have an entry
        return None


def _places() -> Iterator[tuple[str, str]]:
    account = _account()
    homes = {str(Path.home()), os.environ.get("HOME", ""), account.pw_dir if account else ""}
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
    if account or users - {""}:
        users.add(getpass.getuser())
    hosts = {socket.gethostname(), platform.node(), os.environ.get("HOSTNAME", "")}
    hosts |= {host.partition(".")[0] for host in hosts}
    for words, name in ((hosts, "<machine>"), (users, "<user>")):
        for word in sorted(words - {""}, key=len, reverse=True):
            yield word, name
