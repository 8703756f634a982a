"""The text of the hipdnn dialect: how its operations are written for people, and back into MLIR's generic form.

MLIR's Python bindings give a dialect no printer, and the generic form has a number for every slot of operands:

    "hipdnn.execute"(%a, %b, %c) {executable = @g, operandSegmentSizes = array<i32: 1, 1, 0, ... 0, 1, 0, ...>} : (...) -> ()

Here the same call reads

    hipdnn.execute @g ins(%a, %b) outs(%c) : (...) -> ()

Both directions change single lines and keep their number, so lines of messages hold. The generic form is still read.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from torch_mlir import ir

from .dialect import MAX_INPUTS, MAX_RESULTS, ExecuteOp, GraphOp, LaunchKernelOp, LaunchOp, YieldOp

_REGIONS = (GraphOp.OPERATION_NAME, LaunchOp.OPERATION_NAME)
_CALLEES = {ExecuteOp.OPERATION_NAME: "executable", LaunchKernelOp.OPERATION_NAME: "kernel"}
_YIELD = YieldOp.OPERATION_NAME
_OPERANDS, _RESULTS = "operandSegmentSizes", "resultSegmentSizes"

_NAMES = "|".join(re.escape(name) for name in (*_REGIONS, *_CALLEES))
_LEFT = r"(?P<left>\s*(?:%[^=\"]+=\s*)?)"
_SYMBOL = r"@(?:[\w$.-]+|\"[^\"]*\")"
_GENERIC = re.compile(rf"{_LEFT}\"(?P<name>{_NAMES})\"\((?P<operands>[^()]*)\)(?P<rest>.*)")
_READABLE = re.compile(
    rf"{_LEFT}(?P<name>{_NAMES})(?: (?P<callee>{_SYMBOL}))? ins\((?P<ins>[^()]*)\)(?: outs\((?P<outs>[^()]*)\))?(?P<rest>.*)"
)
_YIELD_GENERIC = re.compile(
    rf"(\s*)\"{re.escape(_YIELD)}\"\(([^()]*)\)(?: \{{{_OPERANDS} = [^{{}}]*\}})? : \((.*)\) -> \(\)(.*)"
)
_YIELD_READABLE = re.compile(rf"(\s*){re.escape(_YIELD)}(?: ([^:]+?) : (.+?))?( loc\(.*\))?\s*")
_SIZES = re.compile(rf"(?:{_OPERANDS}|{_RESULTS}) = array<i32: [\d, ]+>")


def module_text(module: ir.Operation, *, debug_info: bool = False, large_elements_limit: int | None = None) -> str:
    """A module as people read it; `generic_text` makes of it what MLIR's parser reads."""
    text = module.get_asm(enable_debug_info=debug_info, large_elements_limit=large_elements_limit)
    return readable_text(str(text)).rstrip() + "\n"


def readable_text(text: str) -> str:
    """What MLIR printed, with the steps of the hipdnn dialect as `hipdnn.graph ins(...) outs(...)`."""
    lines = text.split("\n")
    for opened, start, end in _regions(lines, _GENERIC):
        lines[start] = _readable(opened, lines[end]) + opened["rest"]
        lines[end] = _without(lines[end], _SIZES)
    for number, line in enumerate(lines):
        if (yielded := _YIELD_GENERIC.fullmatch(line)) is not None:
            indent, operands, types, location = yielded.groups()
            lines[number] = f"{indent}{_YIELD}" + (f" {operands} : {types}" if operands else "") + location
        elif (match := _GENERIC.fullmatch(line)) is not None and match["name"] in _CALLEES:
            callee = re.compile(rf"\b{_CALLEES[match['name']]} = {_SYMBOL}")
            lines[number] = _readable(match, line) + _without(_without(match["rest"], _SIZES), callee)
    return "\n".join(lines)


def generic_text(text: str) -> str:
    """The steps of the hipdnn dialect in the generic form, which MLIR's parser reads; those that are in it stay as they are."""
    lines = text.split("\n")
    for opened, start, end in _regions(lines, _READABLE):
        lines[start] = f'{opened["left"]}"{opened["name"]}"({_operands(opened)}){opened["rest"]}'
        closing, _, rest = lines[end].partition("})")
        lines[end] = f"{closing}}}){_with(rest, [_operand_sizes(opened), _result_sizes(opened)])}"
    for number, line in enumerate(lines):
        if (yielded := _YIELD_READABLE.fullmatch(line)) is not None:
            indent, operands, types, location = (group or "" for group in yielded.groups())
            sizes = _array(_OPERANDS, [_count(operands)], [MAX_RESULTS])
            lines[number] = f'{indent}"{_YIELD}"({operands}) {{{sizes}}} : ({types}) -> (){location}'
        elif (match := _READABLE.fullmatch(line)) is not None and match["name"] in _CALLEES:
            callee = [f"{_CALLEES[match['name']]} = {match['callee']}"] if match["callee"] else []
            rest = _with(match["rest"], [*callee, _operand_sizes(match)])
            lines[number] = f'{match["left"]}"{match["name"]}"({_operands(match)}){rest}'
    return "\n".join(lines)


def column_before(line: str, generic: str, column: int) -> int:
    """The column of a line that a column of the line that `generic_text` made of it stands for; both count from 1."""
    place = column - 1
    for block in SequenceMatcher(None, generic, line, autojunk=False).get_matching_blocks():
        if place < block.a + block.size:
            return block.b + max(place - block.a, 0) + 1
    return len(line) + 1


def _regions(lines: Sequence[str], header: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int, int]]:
    """Operations with a region: their match, the number of the line that opens it and of the one that ends it."""
    opened: list[tuple[re.Match[str] | None, int]] = []
    for number in range(len(lines)):
        if opened and lines[number].lstrip().startswith("})"):
            match, start = opened.pop()
            if match is not None and match["name"] in _REGIONS:
                yield match, start, number
        if lines[number].rstrip().endswith("({"):
            opened.append((header.fullmatch(lines[number]), number))


def _readable(match: re.Match[str], sized: str) -> str:
    """The part of an operation up to its operands; `sized` is the line that has its attributes."""
    values = [value for value in match["operands"].split(", ") if value]
    found = re.search(rf"{_OPERANDS} = array<i32: ([\d, ]+)>", sized)
    ins = sum(map(int, found[1].split(", ")[:MAX_INPUTS])) if found else len(values)
    callee = re.search(rf"\b{_CALLEES[match['name']]} = ({_SYMBOL})", sized) if match["name"] in _CALLEES else None
    outs = f" outs({', '.join(values[ins:])})" if values[ins:] else ""
    return f"{match['left']}{match['name']}{f' {callee[1]}' if callee else ''} ins({', '.join(values[:ins])}){outs}"


def _operands(match: re.Match[str]) -> str:
    return ", ".join(part for part in (match["ins"], match["outs"]) if part)


def _operand_sizes(match: re.Match[str]) -> str:
    return _array(_OPERANDS, [_count(match["ins"]), _count(match["outs"])], [MAX_INPUTS, MAX_RESULTS])


def _result_sizes(match: re.Match[str]) -> str:
    """The sizes of the slots of results, counted on the left: `%a, %b:2 =` are three."""
    names = match["left"].strip().removesuffix("=")
    count = sum(int(name.partition(":")[2] or 1) for name in names.split(",")) if names else 0
    return _array(_RESULTS, [count], [MAX_RESULTS])


def _count(values: str | None) -> int:
    return len(values.split(",")) if values and values.strip() else 0


def _array(name: str, counts: Sequence[int], slots: Sequence[int]) -> str:
    sizes = [int(slot < count) for count, group in zip(counts, slots, strict=True) for slot in range(group)]
    return f"{name} = array<i32: {', '.join(map(str, sizes))}>"


def _without(text: str, attribute: re.Pattern[str]) -> str:
    """The end of an operation without some of its attributes."""
    text = re.sub(rf"(?:{attribute.pattern})(?:, |(?=\}}))", "", text)
    return text.replace(", }", "}", 1).replace(" {}", "", 1)


def _with(rest: str, attributes: Sequence[str]) -> str:
    """The end of an operation, after its operands or its region, with more attributes."""
    given = rest.lstrip()
    if given.startswith("{"):
        return f" {{{', '.join(attributes)}, {given[1:]}"
    return f" {{{', '.join(attributes)}}} {given}"
