"""Models on the disk: files and folders that are served, their names and their versions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
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
        source: What there is of it: a program, a model, or the folder of a decoder.
        stamp: Differs where that does.
        folder: Of a decoder that generates texts: what its tokenizer is read from. Empty for others.
        max_length: Most tokens of a text of such a decoder.
        program: What the source was compiled to for the server; empty where it was not.
        older: Smaller versions beside it, the largest first.
    """

    name: str
    version: str
    source: str
    stamp: int
    folder: str = ""
    max_length: int = field(default=0, compare=False)
    program: str = field(default="", compare=False)
    older: tuple[ModelFile, ...] = field(default=(), compare=False)

    @property
    def path(self) -> str:
        """Of the program; before it is compiled of the source."""
        return self.program or self.source

    @property
    def is_program(self) -> bool:
        """Whether it is compiled."""
        return Path(self.path).suffix == SUFFIXES[0]

    def compiled(self, program: Path) -> ModelFile:
        """Return the same model as a program."""
        return replace(self, program=str(program))


def find_models(paths: Iterable[Path]) -> list[ModelFile]:
    """Return what is to be served of files, folders of a model, and folders of such folders.

    Raises:
        ModelError: There is no model at a path, or two have one name.
    """
    models, problems = look_for_models(paths)
    for problem in problems.values():
        raise problem
    return [*models.values()]


def look_for_models(paths: Iterable[Path]) -> tuple[dict[str, ModelFile], dict[str, ModelError]]:
    """Return models by name, and why there is none of a name, or not one alone; arguments as for `find_models`."""
    models: dict[str, ModelFile] = {}
    problems: dict[str, ModelError] = {}

    def look(path: Path) -> bool:
        name = path.name if path.is_dir() or path.suffix not in SUFFIXES else path.stem
        try:
            model = _model_at(path, name)
        except ModelError as error:
            problems.setdefault(name, error)
            return True
        if model is None:
            return False
        other = models.setdefault(name, model)
        if other != model:
            hint = f"rename one; the other is {other.source}"
            problems.setdefault(name, ModelError(f"two models are called '{name}'", where=model.source, hint=hint))
        return True

    for path in (path.absolute() for path in paths):
        found = [look(path)]
        if path.is_dir() and not found[0]:
            found = [look(folder) for folder in sorted(path.iterdir()) if folder.is_dir()]
        if not any(found):
            expected = f"a {', '.join(SUFFIXES)} file, or a folder of them"
            problems.setdefault(path.name, ModelError("no model", where=str(path), expected=expected))
    return models, problems


def _model_at(path: Path, name: str) -> ModelFile | None:
    if not path.exists():
        raise ModelError("no such file", where=str(path), hint="check the path")
    if path.is_dir():
        return _model_in(path, name)
    return ModelFile(name, "1", str(path), _stamp(path)) if path.suffix in SUFFIXES else None


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
    found: list[ModelFile] = []
    for version in sorted(versions, key=lambda one: -int(one.name)):
        with suppress(ModelError) if found else nullcontext():
            model = _model_in(version, name)
            if model is not None:
                found.append(replace(model, version=str(int(version.name))))
    return replace(found[0], older=tuple(found[1:])) if found else None


def _stamp(path: Path) -> int:
    return path.stat().st_mtime_ns
