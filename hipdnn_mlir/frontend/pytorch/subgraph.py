"""A subgraph that Dynamo has captured, with what are constants, numbers and tensors among its arguments told apart."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import Dim

_NORMS = (nn.functional.batch_norm, nn.functional.instance_norm)


class Subgraph:
    """A subgraph of `torch.compile`.

    Attributes:
        graph: as Dynamo gave it.
        uncounted: which of the constants are arguments of norms, whose kernels update running statistics without counting it.

    Args:
        graph: from Dynamo.
    """

    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self._placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
        self._constants = [index for index, node in enumerate(self._placeholders) if _is_constant(node)]
        self.uncounted = [
            number
            for number, index in enumerate(self._constants)
            if any(user.target in _NORMS for user in self._placeholders[index].users)
        ]
        self._numbers = {index for index, node in enumerate(self._placeholders) if _is_number(node)}
        values = [node.meta.get("example_value") for node in self._placeholders]
        self._tensors = [
            index
            for index, value in enumerate(values)
            if isinstance(value, Tensor) and index not in self._numbers.union(self._constants)
        ]
        self._symbols = {
            str(size): (position, axis)
            for position, index in reversed(list(enumerate(self._tensors)))
            for axis, size in enumerate(values[index].shape)
            if isinstance(size, torch.SymInt)
        }
        self._sizes = {index: str(value) for index, value in enumerate(values) if isinstance(value, torch.SymInt)}

    @property
    def is_dynamic(self) -> bool:
        """Whether sizes are open, and each number among the arguments is a size of a tensor."""
        return bool(self._symbols) and all(name in self._symbols for name in self._sizes.values())

    def constants(self, args: Sequence[Any]) -> list[Tensor]:
        """The arguments that are constants."""
        return [args[index] for index in self._constants]

    def tensors(self, args: Sequence[Any]) -> list[Tensor]:
        """The arguments that are no constants."""
        return [args[index] for index in self._tensors]

    def key(self, args: Sequence[Any], *, is_dynamic: bool) -> tuple[Any, ...]:
        """What a program is made for."""
        numbers = tuple(args[index].item() for index in sorted(self._numbers))
        if is_dynamic:
            return numbers
        sizes = tuple(arg for arg in args if not isinstance(arg, Tensor))
        return numbers, sizes, tuple((tuple(tensor.shape), tensor.dtype) for tensor in self.tensors(args))

    def dynamic_shapes(self) -> tuple[dict[int, Any], ...]:
        """For each tensor the dims that are open."""
        shapes = [self._placeholders[index].meta["example_value"].shape for index in self._tensors]
        return tuple(
            {axis: Dim.AUTO for axis, size in enumerate(shape) if isinstance(size, torch.SymInt)} for shape in shapes
        )

    def frozen(self, args: Sequence[Any], *, is_dynamic: bool) -> nn.Module:
        """A module of the tensors alone, for these constants and numbers; for these sizes where it is not dynamic."""
        numbers = {self._placeholders[index].name: args[index].item() for index in self._numbers}
        own = {index: args[index] for index in range(len(args)) if index not in self._tensors}
        sizes = {index: self._symbols[name] for index, name in self._sizes.items()} if is_dynamic else {}
        return _Frozen(_with_numbers(self.graph, numbers), own, self._tensors, sizes)


class _Frozen(nn.Module):
    """A subgraph with some of its arguments as constants, and some computed from sizes."""

    def __init__(
        self,
        graph: fx.GraphModule,
        own: Mapping[int, Any],
        tensors: Sequence[int],
        sizes: Mapping[int, tuple[int, int]],
    ) -> None:
        super().__init__()
        self.graph = graph
        self._own = {index: value for index, value in own.items() if not isinstance(value, Tensor)}
        self._tensors, self._sizes = tensors, sizes
        for index, value in own.items():
            if isinstance(value, Tensor):
                self.register_buffer(f"constant_{index}", value.detach(), persistent=False)

    def forward(self, *tensors: Tensor) -> Any:
        """The subgraph's results."""
        args = {**self._own, **dict(zip(self._tensors, tensors, strict=True))}
        args |= {index: tensors[position].shape[axis] for index, (position, axis) in self._sizes.items()}
        count = len(args) + len(list(self.buffers(recurse=False)))
        return self.graph(*(args[i] if i in args else getattr(self, f"constant_{i}") for i in range(count)))


def _is_constant(node: fx.Node) -> bool:
    """Whether Dynamo says that an argument is a parameter or buffer of a module."""
    return "_dynamo_static_input_type" in node.meta.get("tensor_dict", {})


def _is_number(node: fx.Node) -> bool:
    """Whether an argument is a float that Dynamo passes as a tensor, to be read with `item()`."""
    return bool(node.users) and all(user.op == "call_method" and user.target == "item" for user in node.users)


def _with_numbers(graph: fx.GraphModule, numbers: Mapping[str, float]) -> fx.GraphModule:
    """The graph with numbers for what is read from some of its arguments."""
    if not numbers:
        return graph
    made = copy.deepcopy(graph.graph)
    for node in [node for node in made.nodes if node.op == "placeholder" and node.name in numbers]:
        for user in list(node.users):
            user.replace_all_uses_with(numbers[node.name])
            made.erase_node(user)
    return fx.GraphModule(graph, made)
