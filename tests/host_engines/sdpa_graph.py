"""Attention graphs for the host library, and what they must compute, in float64."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute, AttributeType, DataType, Descriptor
from host_engines.host_graph import Backend, HostGraph, HostPlan, Operand

SDPA = "HOST_SDPA_ENGINE"
BOTTOM_RIGHT = 1
"""HIPDNN_DIAGONAL_ALIGNMENT_BOTTOM_RIGHT_EXT."""
_KINDS = {
    bool: AttributeType.BOOLEAN,
    float: AttributeType.FLOAT,
    int: AttributeType.INT64,
}
_KINDS_BY_NAME = {
    "DIAGONAL_ALIGNMENT_EXT": AttributeType.DIAGONAL_ALIGNMENT_EXT,
    "MAX_SEQ_LEN_KV_EXT": AttributeType.INT32,
}


def in_pages(x: np.ndarray, page_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows [b, h, s, d] in pages of a random order, with two that are of nobody, and the table [b, 1, n, 1]."""
    b, h, s, d = x.shape
    most = -(-s // page_rows)
    table = np.random.default_rng(seed).permutation(b * most + 2)[: b * most].reshape(b, 1, most, 1).astype(np.int32)
    pool = np.full((b * most + 2, h, page_rows, d), np.nan).astype(x.dtype)
    for row in range(s):
        pool[table[:, 0, row // page_rows, 0], :, row % page_rows] = x[:, :, row]
    return pool, table


class SdpaGraph(HostGraph):
    """A HostGraph with attention."""

    def sdpa(self, tensors: dict[str, Operand], attributes: dict[str, Any]) -> None:
        """One attention forward node.

        Args:
            tensors: by the end of the attribute's name, "QDESC" or "ATTN_MASK_EXT".
            attributes: likewise; the Python type says the attribute's, but for those in a table of their own.
        """
        operation = Backend(Descriptor.OPERATION_SDPA_FWD_DESCRIPTOR)
        for name, operand in tensors.items():
            key = Attribute[f"OPERATION_SDPA_FWD_{name}"]
            operation.set(key, AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        for name, value in attributes.items():
            kind = _KINDS_BY_NAME.get(name) or _KINDS[type(value)]
            operation.set(Attribute[f"SDPA_FWD_{name}"], kind, [value])
        operation.set(Attribute.SDPA_FWD_COMP_TYPE_EXT, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())


@dataclass(frozen=True)
class Attention:
    """One call.

    Attributes:
        q, k, v: [b, h, s, d], in any strides.
        mask: broadcastable to [b, hq, s_q, s_kv], added or, where boolean, true for keys attended.
        left, right: bounds of the band around the diagonal.
        lengths: queries and keys per batch.
        cap: scores become cap * tanh(score / cap) before the mask; None for none.
        sink: f32 [1, hq, 1, 1], a score more for each head, without a value.
        page_rows: keys and values are given in pages of so many rows, in two orders.
    """

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scale: float = 1.0
    mask: np.ndarray | None = None
    left: int | None = None
    right: int | None = None
    bottom_right: bool = False
    lengths: tuple[np.ndarray, np.ndarray] | None = None
    cap: float | None = None
    sink: np.ndarray | None = None
    page_rows: int | None = None

    def attended(self) -> np.ndarray:
        """Which keys a query may see by lengths and band: [b, 1, s_q, s_kv]."""
        b, s_q, s_kv = self.q.shape[0], self.q.shape[2], self.k.shape[2]
        lengths = self.lengths or (np.full(b, s_q), np.full(b, s_kv))
        of_q, of_kv = (n.astype(np.int64).reshape(b, 1, 1, 1) for n in lengths)
        i, j = np.arange(s_q).reshape(1, 1, -1, 1), np.arange(s_kv).reshape(1, 1, 1, -1)
        ahead = j - i - (of_kv - of_q if self.bottom_right else 0)
        seen = (i < of_q) & (j < of_kv)
        if self.left is not None:
            seen &= ahead > -self.left
        return seen if self.right is None else seen & (ahead <= self.right)

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """Result and log-sum-exp in float64; a query without keys has 0 and -inf."""
        q, k, v = (x.astype(np.float64) for x in (self.q, self.k, self.v))
        k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
        scores = self.scale * (q @ np.swapaxes(k, -1, -2))
        if self.cap is not None:
            scores = self.cap * np.tanh(scores / self.cap)
        if self.mask is not None and self.mask.dtype == np.bool_:
            scores = np.where(self.mask, scores, -np.inf)
        elif self.mask is not None:
            scores = scores + self.mask.astype(np.float64)
        scores = np.where(self.attended(), scores, -np.inf)
        high = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        if self.sink is not None:
            high = np.maximum(high, self.sink)
        base = np.where(np.isinf(high), 0.0, high)
        weights = np.exp(scores - base)
        total = weights.sum(axis=-1, keepdims=True)
        if self.sink is not None:
            total = total + np.exp(self.sink - base)
        with np.errstate(divide="ignore"):
            return (weights / np.where(total == 0, 1.0, total)) @ v, high + np.log(total)

    def plan(self, o: np.ndarray, stats: np.ndarray | None = None, threads: int = 2) -> HostPlan:
        """A plan that writes `o` and, where given, the log-sum-exp."""
        graph = SdpaGraph()
        arrays = {"QDESC": self.q, "KDESC": self.k, "VDESC": self.v, "ODESC": o}
        attributes: dict[str, Any] = {"ATTN_SCALE_VALUE_EXT": self.scale}
        if self.page_rows is not None:
            for seed, name in enumerate("KV"):
                pool, table = in_pages(arrays[f"{name}DESC"], self.page_rows, seed)
                arrays |= {f"{name}DESC": pool, f"PAGE_TABLE_{name}DESC": table}
            attributes["MAX_SEQ_LEN_KV_EXT"] = self.k.shape[2]
        if self.mask is not None:
            arrays["ATTN_MASK_EXT"] = self.mask
        if stats is not None:
            arrays["STATSDESC"] = stats
            attributes["GENERATE_STATS_EXT"] = True
        for name, bound in (("LEFT", self.left), ("RIGHT", self.right)):
            if bound is not None:
                attributes[f"{name}_BOUND_EXT"] = bound
        if self.cap is not None:
            attributes["SOFT_CAP_MLIR_EXT"] = self.cap
        if self.sink is not None:
            arrays["SINK_TOKEN_EXT"] = self.sink
        if self.bottom_right:
            attributes["DIAGONAL_ALIGNMENT_EXT"] = BOTTOM_RIGHT
        if self.lengths is not None:
            attributes["PADDING_MASK_EXT"] = True
            for name, lengths in zip(("SEQ_LEN_QDESC", "SEQ_LEN_KVDESC"), self.lengths, strict=True):
                arrays[name] = lengths.reshape(-1, 1, 1, 1)
        graph.sdpa({name: graph.tensor(array) for name, array in arrays.items()}, attributes)
        return graph.plan(SDPA, threads)
