"""Every error a user can meet: one line that says what, where, expected against got, and what to do next."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

USER_ERROR = 2
"""Exit code for something the user can mend: a file, an argument, an operation outside the table."""

COMPILER_DEFECT = 3
"""Exit code for a fault of this compiler or of a library under it."""

NO_ROW = "no-row"
"""Rule of rejects of operators that the op table has not."""


def meant(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?`` with the known word that is most like one that is not; empty where none is."""
    near = difflib.get_close_matches(word, [*known], n=1)
    return f"did you mean {near[0]}?" if near else ""


@dataclass(frozen=True)
class Reject:
    """Why one operation stays outside every graph of the target: a value, never an exception.

    Attributes:
        op: Operation, as users know it (``Resize`` or ``torch.aten.cumsum``).
        rule: Short name of the rule that refused it, such as ``dtype`` or ``rank``.
        reason: One clause with what was expected and what was found.
        node: Name of the ONNX node, where known.
    """

    op: str
    rule: str
    reason: str
    node: str = ""

    def __str__(self) -> str:
        where = f" ({self.node})" if self.node else ""
        return f"{self.op}{where}: {self.reason} [{self.rule}]"


class HipdnnMlirError(Exception):
    """Base of all errors this package raises on purpose.

    Args:
        message: What went wrong, one clause, no full stop.
        where: File, node, field, call or argument at fault.
        expected: What would have been right.
        got: What was found instead.
        hint: What to do next, one clause.

    Attributes:
        sample: Where a model is compiled at several sample sizes: the number of the sample that the message speaks of.
        beyond: Then, too: sizes larger than this may do where these do not; 0 where that is not known.
    """

    exit_code: ClassVar[int] = USER_ERROR
    sample: int = 0
    beyond: int = 0

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        """Return the whole error as one line."""
        text = f"{self.where}: {self.message}" if self.where else self.message
        if self.expected and self.got:
            text += f": expected {self.expected}, got {self.got}"
        elif self.expected:
            text += f": expected {self.expected}"
        elif self.got:
            text += f": got {self.got}"
        if self.hint:
            text += f"; {self.hint}"
        return " ".join(text.split())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle through the structured form, keyword-only fields included."""
        return error_from_dict, (self.to_dict(),)

    def _fields(self) -> dict[str, Any]:
        """Return this class's constructor arguments, JSON types only."""
        return {
            "message": self.message,
            "where": self.where,
            "expected": self.expected,
            "got": self.got,
            "hint": self.hint,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form that ``error_from_dict`` turns back into the same class."""
        return {"error": type(self).__name__, "fields": self._fields()}


UNMAPPED = ("failed to map segment from shared object", "cannot allocate memory in static TLS block")
"""What the loader says of a library that finds no memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception tells that memory ran out."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and any(words in str(error) for words in UNMAPPED)
    )


class MachineError(HipdnnMlirError):
    """The machine has not what it takes just now: memory, room on a disk, a folder to write to. That says nothing of the model."""


class ModelError(HipdnnMlirError):
    """The user's model, inputs or arguments are wrong."""


class DynamicDimensionError(ModelError):
    """No single program serves all sizes of a dynamic dimension.

    Args:
        message: As in the base class.
        where: As in the base class.
        expected: As in the base class.
        got: As in the base class.
        hint: As in the base class; the default says how to make the dimension static.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = "make the dimension static with --shape",
    ) -> None:
        super().__init__(message, where=where, expected=expected, got=got, hint=hint)


class StaticDimensionsError(ModelError):
    """A dimension that has to be known when a model is compiled is dynamic."""


class PaddingError(ModelError):
    """A model mixes elements along a dynamic dimension that was to be padded to a bucket."""


class MissingToolError(HipdnnMlirError):
    """Something that compiling for a target takes is not installed; what a model gets there is not known before it is."""


class ProgramError(HipdnnMlirError):
    """A ``.hipdnn`` file is broken, too new, or for another target."""


class DeviceError(HipdnnMlirError):
    """A call into a device library failed.

    The message carries the call, its status and the library's own words.
    """


class WrongTargetError(ProgramError, DeviceError):
    """A program is compiled for another device than the one it was loaded on."""


@dataclass(frozen=True)
class RefusedPlan:
    """A graph that the library on a machine has no plan for.

    Attributes:
        graph: Name of the executable, which says what it computes and how its tensors lie.
        summary: Its operations in one line.
        nodes: The ONNX nodes in it, joined by ``+``.
        reason: The library's own words.
    """

    graph: str
    summary: str
    nodes: str
    reason: str

    def __str__(self) -> str:
        where = f" ({self.nodes})" if self.nodes else ""
        return f"{self.summary}{where}: {self.reason}"


class PlanRefusedError(DeviceError):
    """The device's library refuses graphs of a program, although the compiler's tables say that it takes them.

    Args:
        refusals: All of them; at least one.
        where: The program.
        hint: As in the base class; the default says how to compile for what the library takes.
    """

    def __init__(
        self,
        refusals: Iterable[RefusedPlan | Sequence[str]],
        *,
        where: str | None = None,
        hint: str | None = (
            "run the .onnx file itself, or compile it on this machine with 'hipdnn-mlir compile', "
            "which compiles the refused graphs another way"
        ),
    ) -> None:
        self.refusals = tuple(made if isinstance(made, RefusedPlan) else RefusedPlan(*made) for made in refusals)
        count = len(self.refusals)
        super().__init__(
            f"the library refuses {count} {'graph' if count == 1 else 'graphs'}: " + "; ".join(map(str, self.refusals)),
            where=where,
            hint=hint,
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "refusals": [list(asdict(refusal).values()) for refusal in self.refusals],
            "where": self.where,
            "hint": self.hint,
        }


class PassError(HipdnnMlirError):
    """The compiler itself failed: a pass raised, the verifier refused its result, or the process died.

    Args:
        message: What happened, one clause.
        pass_name: The pass that was running, where known.
        earlier: The passes that had run before it.
        reproducer: Directory or file with which the failure can be repeated.
        detail: Full diagnostics, of any length; kept out of the one-line message.
        where: As in the base class.
        hint: As in the base class; the default asks to report the reproducer.
    """

    exit_code: ClassVar[int] = COMPILER_DEFECT

    def __init__(
        self,
        message: str,
        *,
        pass_name: str | None = None,
        earlier: Sequence[str] = (),
        reproducer: Path | str | None = None,
        detail: str = "",
        where: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.pass_name = pass_name
        self.earlier = tuple(earlier)
        self.reproducer = None if reproducer is None else Path(reproducer)
        self.detail = detail

    def __str__(self) -> str:
        """Return the whole error as one line, reproducer last."""
        text = super().__str__()
        if self.pass_name:
            after = f" after {', '.join(self.earlier)}" if self.earlier else ""
            text = f"pass {self.pass_name}{after}: {text}"
        if self.reproducer:
            text += f"; this is a defect of the compiler, reproducer: {self.reproducer}"
        return text

    def with_reproducer(self, reproducer: Path) -> PassError:
        """Return the same error pointing at a saved reproducer."""
        return PassError(**{**self._fields(), "reproducer": reproducer})

    def _fields(self) -> dict[str, Any]:
        return {
            "message": self.message,
            "where": self.where,
            "hint": self.hint,
            "pass_name": self.pass_name,
            "earlier": list(self.earlier),
            "reproducer": None if self.reproducer is None else str(self.reproducer),
            "detail": self.detail,
        }


class UnsupportedError(HipdnnMlirError):
    """Some nodes have no place on the target; every one of them is named.

    Args:
        rejects: All nodes left out, with reasons; at least one.
        target: The target the model was compiled for.
        where: The model.
        hint: As in the base class; the default points at the command that shows all of a model.
    """

    def __init__(
        self,
        rejects: Iterable[Reject],
        *,
        target: str = "host",
        where: str | None = None,
        hint: str | None = "'hipdnn-mlir explain' says what would help, and where the rest runs",
    ) -> None:
        self.rejects = tuple(dict.fromkeys(rejects))  # a model with dynamic dimensions is refused once per sample
        self.target = target
        count = len(self.rejects)
        super().__init__(
            f"{count} {'node' if count == 1 else 'nodes'} cannot run on target '{target}': "
            + "; ".join(_grouped(self.rejects)),
            where=where,
            hint=hint,
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "rejects": [asdict(reject) for reject in self.rejects],
            "target": self.target,
            "where": self.where,
            "hint": self.hint,
        }


def _grouped(rejects: Iterable[Reject]) -> list[str]:
    """Return one clause per (operation, rule, reason), naming all its nodes."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for reject in rejects:
        groups.setdefault((reject.op, reject.rule, reject.reason), []).append(repr(reject.node))
    return [
        f"{op}{' at ' + ', '.join(named) if (named := [n for n in nodes if n != repr('')]) else ''}: {reason} [{rule}]"
        for (op, rule, reason), nodes in groups.items()
    ]


_CLASSES: Mapping[str, type[HipdnnMlirError]] = {
    cls.__name__: cls
    for cls in (
        HipdnnMlirError,
        MachineError,
        ModelError,
        DynamicDimensionError,
        StaticDimensionsError,
        PaddingError,
        ProgramError,
        DeviceError,
        WrongTargetError,
        MissingToolError,
        PlanRefusedError,
        PassError,
        UnsupportedError,
    )
}


def error_from_dict(data: Mapping[str, Any]) -> HipdnnMlirError:
    """Return the error that ``HipdnnMlirError.to_dict`` described, as the class it was.

    Raises:
        KeyError: ``data`` was not made by ``to_dict``.
    """
    cls = _CLASSES[data["error"]]
    fields = dict(data["fields"])
    if cls is UnsupportedError:
        rejects = [Reject(**reject) for reject in fields.pop("rejects")]
        return UnsupportedError(rejects, **fields)
    return cls(**fields)
