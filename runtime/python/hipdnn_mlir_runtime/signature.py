"""Detached signatures of program files: ed25519 (RFC 8032) over all bytes of a file, 64 bytes in a file beside it.

``openssl pkeyutl -rawin`` makes and checks the same.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import MissingToolError, ModelError, ProgramError

if TYPE_CHECKING:
    from types import ModuleType

SUFFIX = ".sig"


def signature_path(program: Path) -> Path:
    """Return where a program's signature is looked for."""
    return program.with_name(program.name + SUFFIX)


def sign(program: Path, key: Path) -> Path:
    """Write the signature of a program file, and return its path.

    Args:
        program: The file.
        key: The private key: PEM, without a password.

    Raises:
        ModelError: The key cannot be used.
        MissingToolError: The package cryptography is not installed.
        OSError: A file cannot be read or written.
    """
    ed25519 = _algorithm()
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = _key(key, lambda text: load_pem_private_key(text, None), ed25519.Ed25519PrivateKey, "private")
    path = signature_path(program)
    path.write_bytes(private.sign(_content(program)))
    return path


def verify(program: Path, key: Path) -> None:
    """Return where a program file is as the owner of a key signed it.

    Args:
        program: The file; its signature lies beside it.
        key: The public key: PEM.

    Raises:
        ProgramError: There is no such signature, or it is not of this file and key.
        ModelError: The key cannot be used.
        MissingToolError: The package cryptography is not installed.
        OSError: A file cannot be read.
    """
    ed25519 = _algorithm()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    public = _key(key, load_pem_public_key, ed25519.Ed25519PublicKey, "public")
    path = signature_path(program)
    try:
        signature = path.read_bytes()
    except FileNotFoundError as error:
        hint = "get it from whoever made the program, who signs with 'hipdnn-mlir sign'"
        raise ProgramError(
            "it is not signed", where=str(program), expected=f"its signature in {path}", hint=hint
        ) from error
    try:
        public.verify(signature, _content(program))
    except InvalidSignature as error:
        raise ProgramError(
            f"{path.name} is not the signature of this file by {key}",
            where=str(program),
            hint="the program has changed since it was signed, or another key signed it: do not run it",
        ) from error


def _algorithm() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        hint = "pip install 'hipdnn-mlir-runtime[sign]'"
        raise MissingToolError("signatures need the package cryptography", hint=hint) from error
    return ed25519


def _key(path: Path, read: Callable[[bytes], Any], kind: type, name: str) -> Any:
    try:
        key = read(path.read_bytes())
    except (TypeError, ValueError) as error:
        raise _unusable(path, name, "something else") from error
    if not isinstance(key, kind):
        raise _unusable(path, name, f"a key of another kind ({type(key).__name__})")
    return key


def _unusable(path: Path, name: str, got: str) -> ModelError:
    hint = "openssl genpkey -algorithm ed25519 makes a private key, openssl pkey -pubout its public one"
    return ModelError(
        "no such key", where=str(path), expected=f"a {name} ed25519 key in PEM, without a password", got=got, hint=hint
    )


def _content(path: Path) -> mmap.mmap | bytes:
    """Return a file's bytes, mapped: they may be many."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""
