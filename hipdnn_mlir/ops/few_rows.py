"""Matmuls of few rows with what surrounds them: a norm of the rows in front, weights of 4 and 8 bits, pointwise nodes behind."""

from dataclasses import dataclass
from itertools import pairwise
from math import prod

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I4, I8

from .blocks import DEQUANTIZE, blocks_of
from .graph import Graph, Node, Tensor
from .spec import Refusal

UNITS_COLUMNS = 16
"""Columns of one operand of NVIDIA's matrix units."""
MOST_ROWS, MOST_ROWS_OF_CODES, MOST_ROWS_OF_UNITS = 4, 16, 32
"""Rows up to which one product each is as fast as the matrix is read; the same where the other way makes floats of all weights in memory;
and rows that matrix units multiply meanwhile."""
WAVE_COLUMNS, WAVE_INNER, WAVE_CHUNKS, LEAST_WAVE_ROWS = 64, 256, 3, 9
"""Where waves own columns: fewest columns of a block, inner positions that a block reads at once, how often at least, and rows."""
_PARTS_BLOCKS = 256
_LEAST_PARTS = 4
"""Blocks of all parts of the inner dim, two for each multiprocessor of a GPU that has more than a hundred; and fewest parts. Two halves
of a gated layer have enough columns, and are one kernel as long as they are whole."""
_MOST_STAGED_ROWS, _MOST_STAGED_BYTES = 8, 36 * 1024
"""Of rows that a block keeps in shared memory."""
_MATMUL, _RMS_NORM, _POINTWISE = (
    D.OPERATION_MATMUL_DESCRIPTOR,
    D.OPERATION_RMSNORM_DESCRIPTOR_EXT,
    D.OPERATION_POINTWISE_DESCRIPTOR,
)
_FLOATS = frozenset({F32, F16, BF16})
_BATCH_DIMS = 3
"""Of operands of a batch of matmuls."""


@dataclass(frozen=True)
class Product:
    """One matmul.

    Attributes:
        node: the matmul.
        weights: its right operand, of dims (..., k, n), or the numbers that it is dequantized from.
        scales: of the numbers, or None.
        block: numbers of one scale, along k; 0 without scales.
    """

    node: Node
    weights: int
    scales: int | None = None
    block: int = 0


@dataclass(frozen=True)
class FewRows:
    """What such a graph computes.

    Attributes:
        left: the left operand of all matmuls, in front of the norm where there is one.
        norm: the norm of its rows, or None.
        products: the matmuls.
        before: nodes that are none of the epilogue.
        rows: of the result, of each matrix.
        inner: the inner dim of the matmuls.
        columns: of each result.
        matrices: how many each right operand is, each with rows of its own.
    """

    left: int
    norm: Node | None
    products: tuple[Product, ...]
    before: tuple[Node, ...]
    rows: int
    inner: int
    columns: int
    matrices: int = 1


def is_few_rows(graph: Graph) -> bool:
    """Whether `few_rows` reads the graph."""
    try:
        few_rows(graph)
    except Refusal:
        return False
    return True


def takes_rows(graph: Graph, found: FewRows, *, has_units: bool) -> str | None:
    """Why there are too many rows for a kernel that reads each weight once, or None; `has_units`: there are NVIDIA's matrix units."""
    if has_units and takes_units(graph, found):
        return None
    if found.matrices > 1:
        return "has a batch of matrices"
    # Where a norm keeps matrix units from more rows, they take the matmuls alone, which is faster than one product each.
    is_alone = any(p.scales is None for p in found.products) or (has_units and found.norm is not None)
    most = MOST_ROWS if is_alone else MOST_ROWS_OF_CODES
    return None if found.rows <= most else f"has {found.rows} rows, at most {most}"


def takes_units(graph: Graph, found: FewRows) -> bool:
    """Whether NVIDIA's matrix units can multiply, and do that faster than one product each."""
    left, products = graph.tensors[found.left], found.products
    count = lane_elements(graph, found)
    has_codes = {graph.tensors[p.weights].dtype if p.scales is not None else None for p in products}
    if left.dtype not in (F16, BF16) or found.rows > MOST_ROWS_OF_UNITS or len(has_codes) > 1:
        return False
    if has_codes == {None} and found.rows <= MOST_ROWS:
        return False
    if found.matrices > 1 and not _takes_matrices(graph, found):
        return False
    if I8 in has_codes and left.dtype is BF16:  # it has too few bits for what codes are added to
        return False
    if found.inner % (4 * count) or row_step(left, found.matrices) % 8 or left.strides[-1] != 1 or left.alignment % 16:
        return False
    if any(graph.tensors[p.weights].alignment % 16 or graph.tensors[p.weights].strides[-1] % count for p in products):
        return False
    if any(p.block % 8 or max(p.block, count) % min(p.block, count) for p in products if p.scales is not None):
        return False
    if found.norm is None:
        return True
    scale = graph.tensors[found.norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]
    return is_staged(found) and scale.alignment % 16 == 0 and scale.strides[-1] == 1


def _takes_matrices(graph: Graph, found: FewRows) -> bool:
    """Whether waves can own columns of several matrices."""
    product, *more = found.products
    if found.norm is not None or product.scales is not None or more or found.rows < LEAST_WAVE_ROWS:
        return False
    steps = (graph.tensors[index].strides[0] for index in (found.left, product.weights))
    return found.columns % WAVE_COLUMNS == 0 and has_chunks(found) and all(step % 8 == 0 for step in steps)


def has_chunks(found: FewRows) -> bool:
    """Whether the inner dim is long enough for waves that own columns."""
    return found.inner % WAVE_INNER == 0 and found.inner >= WAVE_CHUNKS * WAVE_INNER


def inner_parts(rows: int, inner: int, columns: int) -> int:
    """In how many parts the inner dim of a matmul is multiplied at once on matrix units, whose sums are then added; 1 where it stays whole.

    A block of few columns reads all rows for them: with 32 rows, twice as many bytes as weights. Wide blocks of few columns are too few to
    fill a GPU, unless each has a part of the inner dim.
    """
    if not LEAST_WAVE_ROWS <= rows <= MOST_ROWS_OF_UNITS or columns % WAVE_COLUMNS:
        return 1
    parts = _PARTS_BLOCKS * WAVE_COLUMNS // columns
    is_even = parts >= _LEAST_PARTS and inner % (parts * WAVE_INNER) == 0
    return parts if is_even and inner >= parts * WAVE_CHUNKS * WAVE_INNER else 1


def is_staged(found: FewRows) -> bool:
    """Whether a kernel for matrix units has its rows in shared memory: those behind a norm, and those that codes need in another order."""
    if found.norm is None and any(product.scales is None for product in found.products):
        return False
    return found.rows <= _MOST_STAGED_ROWS and 2 * found.rows * found.inner <= _MOST_STAGED_BYTES


def lane_elements(graph: Graph, found: FewRows) -> int:
    """Weights of 16 bytes."""
    dtype = graph.tensors[found.products[0].weights].dtype
    return 32 if dtype is I4 else 16 // dtype.bytes


def row_step(left: Tensor, matrices: int = 1) -> int:
    """Elements from one row of the left operand to the next; 1 where that is no one number.

    All its dims but the last are taken as rows, the last but one alone where there are several matrices.
    """
    first = len(left.dims) - 2 if matrices > 1 else 0
    axes = [axis for axis, size in enumerate(left.dims[:-1]) if size > 1 and axis >= first]
    if not axes:
        return 0
    step = left.strides[axes[-1]]
    for outer, inner in pairwise(axes):
        if left.strides[outer] != left.strides[inner] * left.dims[inner]:
            return 1
    return step


def few_rows(graph: Graph) -> FewRows:
    """What the graph computes, if it is one or more matmuls by matrices whose columns lie along memory. Raises Refusal."""
    nodes = graph.nodes
    if nodes[0].type not in (_MATMUL, _RMS_NORM, DEQUANTIZE):
        raise Refusal("node", "starts with something else")
    before = tuple(node for node in nodes if node.type in (_MATMUL, _RMS_NORM, DEQUANTIZE))
    others = [node for node in nodes if node.type not in (_MATMUL, _RMS_NORM, DEQUANTIZE, _POINTWISE)]
    matmuls = [node for node in before if node.type == _MATMUL]
    if others or not matmuls:
        raise Refusal(
            "node", "takes matmuls, a norm of their rows, dequantization of their weights and pointwise nodes only"
        )
    made = {index: node for node in before for index in node.outputs.values()}
    norm, left = _left(graph, matmuls, made)
    products = tuple(_product(graph, node, made) for node in matmuls)
    used = [norm] * (norm is not None) + [made[index] for node in matmuls if (index := _right(node)) in made] + matmuls
    if any(all(node is not one for one in used) for node in before):
        raise Refusal("node", "has a norm or a dequantization of something else")
    hidden = {index for node in before if node.type != _MATMUL for index in node.outputs.values()}
    pointwise = [node for node in nodes if node.type == _POINTWISE]
    if any(not hidden.isdisjoint(node.inputs.values()) for node in pointwise):
        raise Refusal("operand", "has a norm or a dequantization that something else reads")
    dims = {graph.tensors[index].dims for node in matmuls for index in node.outputs.values()}
    if len(dims) > 1:
        raise Refusal("shape", "has matmuls of different sizes")
    (shape,) = dims
    _check_epilogue(graph, pointwise, shape)
    matrices = _matrices(graph, left, products)
    rows = prod(shape[:-1]) // matrices
    return FewRows(left, norm, products, before, rows, graph.tensors[left].dims[-1], shape[-1], matrices)


def _matrices(graph: Graph, left: int, products: tuple[Product, ...]) -> int:
    """How many each right operand is; raises Refusal where they are no batch of three dims."""
    batches = {graph.tensors[product.weights].dims[:-2] for product in products}
    if all(prod(batch) == 1 for batch in batches):
        return 1
    rows = graph.tensors[left].dims
    if len(batches) > 1 or len(rows) != _BATCH_DIMS or rows[:-2] not in batches:
        raise Refusal("shape", "has a batch of matrices that is not one of rows")
    return rows[0]


def _left(graph: Graph, matmuls: list[Node], made: dict[int, Node]) -> tuple[Node | None, int]:
    """The norm and what it or the matmuls read."""
    lefts = {node.inputs[A.OPERATION_MATMUL_ADESC] for node in matmuls}
    if len(lefts) > 1:
        raise Refusal("operand", "has matmuls of different left operands")
    (left,) = lefts
    norm = made.get(left)
    if norm is not None:
        left = _normalized(graph, norm)
    if graph.tensors[left].operand is None or graph.tensors[left].dtype not in _FLOATS:
        raise Refusal("operand", "multiplies what is computed in the graph")
    return norm, left


def _normalized(graph: Graph, norm: Node) -> int:
    """What an RMS norm of rows, of which nothing but the result is read, reads."""
    if norm.type != _RMS_NORM or A.OPERATION_RMSNORM_BIAS_EXT in norm.inputs:
        raise Refusal("node", "has something else than an RMS norm without a bias in front of a matmul")
    if any(not graph.tensors[index].is_virtual for index in norm.outputs.values()):
        raise Refusal("operand", "has a norm that something else reads")
    x = norm.inputs[A.OPERATION_RMSNORM_X_EXT]
    scale = graph.tensors[norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]
    epsilon = graph.tensors[norm.inputs[A.OPERATION_RMSNORM_EPSILON_EXT]]
    if prod(scale.dims) != scale.dims[-1] or scale.dims[-1] != graph.tensors[x].dims[-1] or scale.operand is None:
        raise Refusal("operand", "has a norm over other dims than the last")
    if epsilon.value is None:
        raise Refusal("operand", "has a norm whose epsilon is no constant")
    return x


def _right(node: Node) -> int:
    return node.inputs[A.OPERATION_MATMUL_BDESC]


def _product(graph: Graph, node: Node, made: dict[int, Node]) -> Product:
    index = _right(node)
    dequantize = made.get(index)
    if dequantize is None:
        _check_matrix(graph.tensors[index], _FLOATS)
        return Product(node, index)
    if dequantize.type != DEQUANTIZE or not graph.tensors[index].is_virtual:
        raise Refusal("operand", "multiplies what is computed in the graph")
    numbers, scales = dequantize.inputs.values()
    axis, block = blocks_of(dequantize)
    codes, factors = graph.tensors[numbers], graph.tensors[scales]
    _check_matrix(codes, frozenset({I4, I8}))
    if axis != len(codes.dims) - 2 or factors.operand is None or factors.dtype not in _FLOATS:
        raise Refusal("operand", "has blocks that do not lie along the inner dim")
    count = codes_at_once(codes)
    if block % count or codes.dims[-2] % count or codes.strides[-1] % count:
        raise Refusal("shape", f"has blocks of {block} of {codes.dims[-2]} numbers, expected multiples of {count}")
    return Product(node, numbers, scales, block)


def codes_at_once(codes: Tensor) -> int:
    """Numbers of 8 bytes."""
    return 16 if codes.dtype is I4 else 8


def _check_matrix(matrix: Tensor, dtypes: frozenset[object]) -> None:
    """Raise Refusal unless it is one matrix in memory whose columns lie along it."""
    if matrix.operand is None or matrix.dtype not in dtypes:
        raise Refusal("operand", f"multiplies by a matrix of {matrix.dtype}")
    if matrix.strides[-2] != 1:
        raise Refusal("strides", "has a matrix whose columns do not lie along memory")


def _check_epilogue(graph: Graph, nodes: list[Node], shape: tuple[int, ...]) -> None:
    for node in nodes:
        if any(graph.tensors[index].dims != shape for index in node.outputs.values()):
            raise Refusal("shape", "the epilogue changes the shape")
