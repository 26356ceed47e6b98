"""FLOPs as functions of shapes alone: a multiply and its add count as 2, biases and padding are not counted.

Every function promises the exact count of the direct algorithm; see `flops.py` for which function uses which. Knows
nothing of names, families or torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Shape = tuple[int, ...]


def linear_flops(x: Shape, out: Shape) -> int:
    """Count the multiply-adds of a linear map over the last dimension.

    Shapes:  x (*B, in); out (*B, out), or (*B) for a weight of one row given as a vector.
    Returns: FLOPs.
    Example: linear_flops((2, 3), (2, 5)) == 60
    """
    return 2 * math.prod(out) * x[-1]


def bilinear_flops(weight: Shape, out: Shape) -> int:
    """Count x1ᵀ A x2 per output: first A x2, then the product with x1.

    Shapes:  weight (out, in1, in2); out (*B, out).
    Returns: FLOPs.
    """
    _, first, second = weight
    return 2 * math.prod(out) * first * (second + 1)


def matmul_flops(a: Shape, out: Shape) -> int:
    """Count the multiply-adds of `a @ b` with broadcast batch dimensions; either operand may be a vector.

    Shapes:  a (*B, m, k) or (k,); out as torch returns it, () for two vectors.
    Returns: FLOPs, 2·batch·m·k·n.
    """
    return 2 * math.prod(out) * a[-1]


def added_matmul_flops(a: Shape, b: Shape) -> int:
    """Count the product in `input + a @ b`; the addition is not counted, as a bias is not.

    Shapes:  a (*B, m, k); b (*B, k, n) or (k,).
    Returns: FLOPs; batches that are summed afterwards (addbmm) count each.
    """
    return 2 * math.prod(a) * (b[-1] if len(b) > 1 else 1)


def tensordot_flops(a: Shape, b: Shape, out: Shape) -> int:
    """Count a contraction over any dimensions: out = (free dimensions of a, free dimensions of b).

    Returns: FLOPs. The contracted size k follows from numel(a)·numel(b) = numel(out)·k².
    """
    elements = math.prod(out)
    if elements == 0:
        return 0
    return 2 * elements * math.isqrt(math.prod(a) * math.prod(b) // elements)


def conv_flops(x: Shape, weight: Shape, out: Shape, *, transposed: bool = False) -> int:
    """Count the multiply-adds of an N-d convolution.

    Shapes:  x (N, C_in, *S_in) or (C_in, *S_in); weight (C_out, C_in/groups, *K), transposed (C_in, C_out/groups, *K);
             out (N, C_out, *S_out) or (C_out, *S_out).
    Returns: FLOPs; positions of the kernel that fall into the padding count too.
    Source:  every output element (transposed: every input element) meets one kernel of C/groups channels.
    Example: conv_flops((1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)) == 7776
    """
    return 2 * math.prod(x if transposed else out) * math.prod(weight[1:])


def attention_flops(query: Shape, key: Shape, value: Shape) -> int:
    """Count both products of scaled dot-product attention; softmax is not counted, a causal mask halves nothing.

    Shapes:  query (*B, H, S_q, d); key (*B, H_kv, S_k, d); value (*B, H_kv, S_k, d_v). Fewer key heads are shared
             among the query heads, so that the largest number counts. Batch dimensions broadcast.
    Returns: FLOPs, 2·B·H·S_q·S_k·(d + d_v).
    """
    batch = math.prod(_broadcast(_broadcast(query[:-3], key[:-3]), value[:-3]))
    heads = max((shape[-3] for shape in (query, key, value) if len(shape) > 2), default=1)
    return 2 * batch * heads * query[-2] * key[-2] * (query[-1] + value[-1])


def recurrent_flops(x: Shape, weights: Sequence[Shape]) -> int:
    """Count the matrix products of an LSTM, GRU or RNN over all steps, layers and directions.

    Shapes:  x (*steps, in), in any order of time and batch, or packed; weights: every parameter of the network. Each
             matrix (gates·hidden, in or hidden), and (proj, hidden) with a projection, meets every step once.
    Returns: FLOPs, 2·T·B·gates·(in + hidden)·hidden per layer and direction without a projection.
    """
    steps = math.prod(x[:-1])
    return 2 * steps * sum(math.prod(weight) for weight in weights if len(weight) == 2)


def sort_flops(x: Shape, dim: int) -> int:
    """Count n·log2 n comparisons for each line along one dimension, rounded to a whole number."""
    if not x or x[dim] < 2:
        return 0
    return round(math.prod(x) * math.log2(x[dim]))


def pool_flops(out: Shape, kernel: int | Sequence[int], dims: int) -> int:
    """Count one operation per output element and kernel position.

    kernel: one size for all `dims` window dimensions, or a size for each; a single one in a sequence stands for all.
    """
    sizes = (kernel,) if isinstance(kernel, int) else tuple(kernel)
    return math.prod(out) * math.prod(sizes * dims if len(sizes) == 1 else sizes)


def einsum_flops(equation: str, operands: Sequence[Shape]) -> int | None:
    """Count an einsum of at most two operands.

    equation: as torch takes it, `...` and an implicit output included.
    Returns: FLOPs. Indexes that only one operand has and the output lacks are summed first, 1 per element. Two
             operands then cost 2 per combination of all indexes if one is contracted, else 1. None for three or
             more operands, whose order of contraction the equation does not fix.
    """
    if len(operands) > 2:
        return None
    terms, output = _einsum_terms(equation, operands)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, operands, strict=True):
        for index, size in zip(term, shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 1))
    total = 0
    kept: list[set[str]] = []
    for position, (term, shape) in enumerate(zip(terms, operands, strict=True)):
        others = set(output).union(*(other for at, other in enumerate(terms) if at != position))
        kept.append(set(term) & others)
        total += math.prod(shape) if set(term) - others else 0
    if len(kept) == 2:
        contracted = (kept[0] & kept[1]) - set(output)
        total += (2 if contracted else 1) * math.prod(sizes[index] for index in kept[0] | kept[1])
    return total


def _einsum_terms(equation: str, operands: Sequence[Shape]) -> tuple[list[list[str]], list[str]]:
    """Index names of each operand and of the output; dimensions under an ellipsis are `.1`, `.2` from the right."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [
        _einsum_indexes(term, len(shape) - len(term.replace("...", "")))
        for term, shape in zip(left.split(","), operands, strict=True)
    ]
    hidden = max((len(term) for term in ([i for i in t if i[0] == "."] for t in terms)), default=0)
    if arrow:
        return terms, _einsum_indexes(right, hidden)
    counts = [index for term in terms for index in term if index[0] != "."]
    once = sorted(index for index in set(counts) if counts.count(index) == 1)
    return terms, [*_einsum_indexes("...", hidden), *once]


def _einsum_indexes(term: str, hidden: int) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *(f".{k}" for k in range(hidden, 0, -1) if dots), *after]


def _broadcast(a: Shape, b: Shape) -> Shape:
    longest = max(len(a), len(b))
    padded = [(1,) * (longest - len(shape)) + shape for shape in (a, b)]
    return tuple(y if x == 1 else x for x, y in zip(*padded, strict=True))
