"""Models on the disk: files and folders that are served, their names and their versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hipdnn_mlir_runtime.errors import ModelError

from ..generate.config import FILE as GENERATION_FILE

SUFFIXES = (".hipdnn", ".onnx", ".pt2")
"""Of files that can be served; of several beside each other the first kind is."""


@dataclass(frozen=True)
class ModelFile:
    """A model that is served.

    Attributes:
        name: What clients call it.
        version: A number, as a text.
        path: Of the program; before it is compiled of the model.
        stamp: Differs where the file does.
        folder: Of a decoder that generates texts: what its tokenizer is read from. Empty for others.
        max_length: Most tokens of a text of such a decoder.
        is_compiled: Whether the program was made for the server, of a model.
    """

    name: str
    version: str
    path: str
    stamp: int
    folder: str = ""
    max_length: int = 0
    is_compiled: bool = False

    @property
    def is_program(self) -> bool:
        """Whether it is compiled."""
        return Path(self.path).suffix == SUFFIXES[0]

    def compiled(self, program: Path) -> ModelFile:
        """Return the same model as a program."""
        return replace(self, path=str(program), stamp=_stamp(program), is_compiled=True)


def find_models(paths: Iterable[Path]) -> list[ModelFile]:
    """Return what is to be served of files, folders of a model, and folders of such folders.

    Raises:
        ModelError: There is no model at a path, or two have one name.
    """
    found: dict[str, ModelFile] = {}
    for path in paths:
        models = list(_models_at(path))
        if not models:
            expected = f"a {', '.join(SUFFIXES)} file, or a folder of them"
            raise ModelError("no model", where=str(path), expected=expected)
        for model in models:
            other = found.setdefault(model.name, model)
            if other is not model:
                message = f"two models are called '{model.name}'"
                raise ModelError(message, where=model.path, hint=f"rename one; the other is {other.path}")
    return list(found.values())


def _models_at(path: Path) -> Iterator[ModelFile]:
    path = path.absolute()
    if not path.exists():
        raise ModelError("no such file", where=str(path), hint="check the path")
    if path.is_file():
        if path.suffix in SUFFIXES:
            yield ModelFile(path.stem, "1", str(path), _stamp(path))
        return
    own = _model_in(path, path.name)
    if own is not None:
        yield own
        return
    for folder in sorted(path.iterdir()):
        if folder.is_dir() and (model := _model_in(folder, folder.name)) is not None:
            yield model


def _model_in(folder: Path, name: str) -> ModelFile | None:
    """The model that a folder is of: the one in it, or in the folder with the largest number."""
    if (folder / GENERATION_FILE).is_file():
        return ModelFile(name, "1", str(folder), _stamp(folder / GENERATION_FILE), str(folder))
    for suffix in SUFFIXES:
        files = sorted(folder.glob(f"*{suffix}"))
        if len(files) > 1:
            hint = "keep one, or make a folder of each"
            raise ModelError(f"several {suffix} files", where=str(folder), hint=hint)
        if files:
            return ModelFile(name, "1", str(files[0]), _stamp(files[0]))
    versions = [one for one in folder.iterdir() if one.is_dir() and one.name.isdecimal() and int(one.name)]
    for version in sorted(versions, key=lambda one: -int(one.name)):
        model = _model_in(version, name)
        if model is not None:
            return replace(model, version=str(int(version.name)))
    return None


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns
