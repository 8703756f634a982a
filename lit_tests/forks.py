"""Programs in Python as forks of one process that has imported them: to start them takes longer than what most tests do."""

import gc
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

SOCKET = "HIPDNN_MLIR_FORKS"
"""The variable that names the process's socket, which is in no folder."""
_MOST_BYTES = 1 << 16
_FORK = multiprocessing.get_context("fork")
_SCRIPT = f"""#!{sys.executable} -IS
import sys
sys.path.append({str(Path(__file__).parent)!r})
from forks import ask
sys.exit(ask())
"""
_started: list["subprocess.Popen[bytes]"] = []
"""Its standard input is open for as long as this is."""


def start(folder: Path) -> str:
    """Start the process, which ends with this one, and write scripts that ask it into a folder; returns the socket's name."""
    name = f"hipdnn-mlir-forks-{os.getpid()}"
    server = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    _started.append(server)
    folder.mkdir(parents=True, exist_ok=True)
    for program in server.stdout.readline().decode().split():
        script = folder / program
        script.write_text(_SCRIPT)
        script.chmod(0o700)
    return name


def ask() -> int:
    """Have the process be the program under whose name this one was started; returns its exit status."""
    words = [str(Path.cwd()), os.environ.get("PYTHONPATH", ""), Path(sys.argv[0]).name, *sys.argv[1:]]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.connect("\0" + os.environ[SOCKET])
        socket.send_fds(link, ["\0".join(words).encode()], [0, 1, 2])
        return link.recv(1)[0]


def _serve(name: str) -> None:
    """Answer until standard input ends."""
    import filecheck.main

    from hipdnn_mlir.cli import opt

    programs = {"hipdnn-opt": opt.main, "filecheck": filecheck.main.main}
    gc.freeze()  # so that forks copy less
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who has answered leaves nothing
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind("\0" + name)
        server.listen()
        print(*programs, flush=True)  # noqa: T201 - for `start`
        while server in select.select([server, sys.stdin], [], [])[0]:
            link, _ = server.accept()
            words, streams, _, _ = socket.recv_fds(link, _MOST_BYTES, 3)
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                program = _FORK.Process(target=_be, args=(programs, words.decode().split("\0"), streams))
                program.start()
                program.join()
                link.send(bytes([program.exitcode & 0xFF]))
                os._exit(0)
            for descriptor in (link.detach(), *streams):
                os.close(descriptor)


def _be(programs: dict, words: list[str], streams: list[int]) -> None:
    """Be the program: with its arguments, folder, modules and streams."""
    folder, modules, name, *arguments = words
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Of their own: the process's may be files, in which one can seek.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", 1)
    os.chdir(folder)
    sys.path[:0] = filter(None, modules.split(os.pathsep))
    sys.argv = [name, *arguments]
    sys.exit(programs[name]())


if __name__ == "__main__":
    _serve(sys.argv[1])
