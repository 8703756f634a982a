"""Signatures of program files."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import numpy as np
import pytest

import hipdnn_mlir
from conftest import Command
from hipdnn_mlir_runtime.errors import MissingToolError, ModelError, ProgramError
from hipdnn_mlir_runtime.signature import sign

SEED = "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"
PUBLIC = "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025"
SIGNATURE = (
    "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
    "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
)
"""RFC 8032, 7.1, test 3: the keys, and the signature of the bytes af 82."""


def pem(label: str, form: str, number: str) -> bytes:
    """A key as RFC 8410 writes it: the form's first bytes, then the number."""
    text = base64.b64encode(bytes.fromhex(form + number))
    return b"-----BEGIN %s KEY-----\n%s\n-----END %s KEY-----\n" % (label.encode(), text, label.encode())


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A private key and its public one."""
    pytest.importorskip("cryptography", reason="cryptography is not installed: pip install '.[test]'")
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(pem("PRIVATE", "302e020100300506032b657004220420", SEED))
    public.write_bytes(pem("PUBLIC", "302a300506032b6570032100", PUBLIC))
    return private, public


def test_signature_is_that_of_the_rfc(keys: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "m.hipdnn").write_bytes(b"\xaf\x82")
    path = sign(tmp_path / "m.hipdnn", keys[0])
    assert path == tmp_path / "m.hipdnn.sig"
    assert path.read_bytes().hex() == SIGNATURE


def test_signed_program_runs_as_without_a_key(keys: tuple[Path, Path], program: Path) -> None:
    private, public = keys
    sign(program, private)
    x = {"image": np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)}
    want = hipdnn_mlir.load(program).run(None, x)[0]
    np.testing.assert_array_equal(hipdnn_mlir.load(program, trusted_key=public).run(None, x)[0], want)


def changed(path: Path, at: int) -> None:
    """Change a byte of a file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


FORGERIES = {
    "the first byte": lambda program, signature: changed(program, 0),
    "a weight": lambda program, signature: changed(program, -1),
    "more bytes": lambda program, signature: program.write_bytes(program.read_bytes() + b"\0"),
    "nothing": lambda program, signature: program.write_bytes(b""),
    "the signature": lambda program, signature: changed(signature, 0),
    "half a signature": lambda program, signature: signature.write_bytes(signature.read_bytes()[:32]),
    "the signature of another file": lambda program, signature: signature.write_bytes(bytes.fromhex(SIGNATURE)),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_program_is_refused_when_something_has_changed(kind: str, keys: tuple[Path, Path], program: Path) -> None:
    private, public = keys
    FORGERIES[kind](program, sign(program, private))
    with pytest.raises(ProgramError, match=r"small\.hipdnn\.sig is not the signature of this file by .*public\.pem"):
        hipdnn_mlir.load(program, trusted_key=public)


def test_program_is_refused_when_another_key_signed_it(keys: tuple[Path, Path], program: Path) -> None:
    private, public = keys
    private.write_bytes(pem("PRIVATE", "302e020100300506032b657004220420", "00" * 32))
    sign(program, private)
    with pytest.raises(ProgramError, match="another key signed it"):
        hipdnn_mlir.load(program, trusted_key=public)


def test_program_is_refused_when_nobody_signed_it(keys: tuple[Path, Path], program: Path) -> None:
    with pytest.raises(ProgramError, match=r"it is not signed: expected its signature in .*small\.hipdnn\.sig"):
        hipdnn_mlir.load(program, trusted_key=keys[1])


OTHER_KEYS = {
    "a private key": (0, "something else"),
    "another kind of key": (pem("PUBLIC", "302a300506032b656e032100", PUBLIC), "a key of another kind"),
    "no key": (b"ssh-ed25519 AAAA", "something else"),
}


@pytest.mark.parametrize("kind", OTHER_KEYS)
def test_key_that_is_none_is_named(kind: str, keys: tuple[Path, Path], program: Path) -> None:
    private, public = keys
    sign(program, private)
    content, words = OTHER_KEYS[kind]
    public.write_bytes(private.read_bytes() if content == 0 else content)
    with pytest.raises(ModelError, match=rf"public\.pem: no such key: expected a public ed25519 key .* got {words}"):
        hipdnn_mlir.load(program, trusted_key=public)


def test_key_that_is_not_there_is_named(keys: tuple[Path, Path], program: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.pem: cannot read: No such file"):
        hipdnn_mlir.load(program, trusted_key=tmp_path / "none.pem")


def test_program_in_memory_has_no_signature(keys: tuple[Path, Path], small_model: Path) -> None:
    with pytest.raises(ModelError, match="trusted_key: a program in memory has no signature"):
        hipdnn_mlir.compile(small_model).session(trusted_key=keys[1])


def test_package_is_named_when_it_is_not_installed(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
    with pytest.raises(MissingToolError, match=r"pip install 'hipdnn-mlir-runtime\[sign\]'"):
        hipdnn_mlir.load(program, trusted_key="key.pem")


def test_commands_sign_and_check(keys: tuple[Path, Path], program: Path, small_model: Path, command: Command) -> None:
    private, public = keys

    def refused(*arguments: object) -> str:
        result = command(*arguments)
        assert result.returncode == 2, result.stdout
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr

    assert "it is not signed" in refused("run", program, "--trusted-key", public)
    assert "--key: no key to sign with" in refused("sign", program)
    result = command("sign", program, "--key", private)
    assert (result.returncode, result.stdout) == (0, f"{program}.sig\n"), result.stderr
    assert command("run", program, "--trusted-key", public).returncode == 0
    assert "an option of program files" in refused("run", small_model, "--trusted-key", public)
    changed(program, -1)
    assert "is not the signature of this file" in refused("run", program, "--trusted-key", public)
