"""Facts about values, taken in passing or from kept tensors: no tensor is kept, changed, or asked through autograd.

Random streams, version counters and the user's dispatch modes see nothing. To be used while no function mode is on,
or under `DisableTorchFunction`.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator

import torch

from torchlens.capture.kinds import PLAIN_TYPES
from torchlens.capture.tensors import NO_VERSION, flat_tensors, undispatched, version_of
from torchlens.records.payloads import FINITE_VALUES, NOT_LOOKED_AT, Held, OutStats

# Elements looked at together: their double precision copy stays at 8 MB, whatever the size of the tensor.
_CHUNK = 1 << 20
# What tensors raise whose values cannot be read: batched by vmap, fake, on meta, without storage.
_UNREADABLE = (RuntimeError, NotImplementedError, TypeError, ValueError)

Stats = tuple[OutStats | None, ...]


class Statistics:
    """Observer: the statistics of every output, by node."""

    def __init__(self) -> None:
        self.rows: dict[int, Stats] = {}

    def saw(self, node: int, out: object) -> None:
        """Take the statistics of a node's outputs."""
        self.rows[node] = stats_of(out)


def stats_of(out: object) -> Stats:
    """Statistics of each tensor in a result, in order; None for one whose values cannot be read.

    A tensor of a user's own class is not asked: it would answer with the user's code.
    """
    return tuple([_stats(tensor) if type(tensor) in PLAIN_TYPES else None for tensor in flat_tensors(out)])


class WatchedParameters:
    """What parameters hold, as long as nobody has written to them since the forward began. Keeps none of them alive."""

    def __init__(self, params: Iterable[torch.Tensor]) -> None:
        self._params = [(weakref.ref(param), version_of(param)) for param in params]

    def held(self, index: int) -> Held:
        """What the values of a parameter hold now; not known if it is gone, has changed, or came during the run."""
        ref, version = self._params[index] if index < len(self._params) else (_gone, NO_VERSION)
        tensor = ref()
        if tensor is None or version == NO_VERSION or version_of(tensor) != version:
            return NOT_LOOKED_AT
        return held_by(tensor)


def _gone() -> None:
    return None


def held_by(tensor: torch.Tensor) -> Held:
    """Which numbers that are not finite a tensor holds. Reads the values once, and copies none if all are finite."""
    if type(tensor) not in PLAIN_TYPES:
        return NOT_LOOKED_AT
    try:
        if undispatched(lambda: _is_finite(tensor.detach())):
            return FINITE_VALUES
    except _UNREADABLE:
        pass
    stats = _stats(tensor)
    return NOT_LOOKED_AT if stats is None else stats.held


def _is_finite(tensor: torch.Tensor) -> bool:
    """Whether the extremes of a dense tensor of real numbers are finite; a nan is both of them."""
    if not tensor.numel() or tensor.layout is not torch.strided or tensor.device.type == "meta":
        return False
    low, high = torch.aminmax(tensor)
    return math.isfinite(low.item()) and math.isfinite(high.item())


def _stats(tensor: torch.Tensor) -> OutStats | None:
    try:
        return undispatched(lambda: _measure(tensor.detach()))
    except _UNREADABLE:
        return None


def _measure(tensor: torch.Tensor) -> OutStats | None:
    if tensor.device.type == "meta":
        return None
    count, values = tensor.numel(), _values(tensor)
    if count == 1 and values.numel() == 1:
        return _of_number(values.item())
    total = _Total(count)
    for chunk in _chunks(values):
        total.add(chunk)
    return total.stats()


def _values(tensor: torch.Tensor) -> torch.Tensor:
    """The elements as a strided tensor; what a sparse tensor leaves out is zero and adds nothing but its count."""
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout is torch.strided and not tensor.is_nested:
        return tensor
    if tensor.layout is torch.sparse_coo:
        return tensor.coalesce().values()
    return tensor.values()


def _chunks(values: torch.Tensor) -> Iterator[torch.Tensor]:
    """Flat pieces of a tensor in any order, without a copy of the whole where its elements lie together."""
    try:
        flat = values.view(-1)
    except RuntimeError:
        ordered = values.permute(sorted(range(values.dim()), key=values.stride, reverse=True))
        flat = ordered.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        yield flat[start : start + _CHUNK]


class _Total:
    """Sums over the chunks of one tensor."""

    def __init__(self, count: int) -> None:
        self.count, self.sum, self.squares, self.most = count, 0.0, 0.0, 0.0
        self.nan = self.posinf = self.neginf = 0

    def add(self, chunk: torch.Tensor) -> None:
        """Add one flat piece."""
        # In its own precision the modulus of a finite number could overflow.
        exact = chunk.to(torch.complex128 if chunk.is_complex() else torch.float64)
        size = exact.abs()
        total = size.sum().item()
        if not math.isfinite(total):
            size = self._finite(exact, size)
            total = size.sum().item()
        self.sum += total
        if size.numel():
            self.squares += torch.dot(size, size).item()
            self.most = max(self.most, size.max().item())

    def _finite(self, exact: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        """The finite magnitudes; the others are counted."""
        finite = size.isfinite()
        # The modulus of (inf, nan) is inf, yet it is no number: the element is asked, not its modulus.
        nan = int(exact.isnan().sum().item())
        negative = 0 if exact.is_complex() else int((exact == -math.inf).sum().item())
        self.nan += nan
        self.neginf += negative
        self.posinf += size.numel() - int(finite.sum().item()) - nan - negative
        return size[finite]

    def stats(self) -> OutStats:
        """What was added up."""
        odd = self.nan + self.posinf + self.neginf
        finite = self.count - odd
        if finite == 0:
            return OutStats(self.count, None, None, None, self.nan, self.posinf, self.neginf)
        return OutStats(
            self.count, self.sum / finite, math.sqrt(self.squares), self.most, self.nan, self.posinf, self.neginf
        )


def _of_number(value: complex) -> OutStats:
    """The statistics of a single element."""
    if isinstance(value, complex):
        nan = math.isnan(value.real) or math.isnan(value.imag)
        value = math.nan if nan else math.hypot(value.real, value.imag)
    if math.isnan(value):
        return OutStats(1, None, None, None, n_nan=1)
    if math.isinf(value):
        return OutStats(1, None, None, None, n_posinf=int(value > 0), n_neginf=int(value < 0))
    size = abs(float(value))
    return OutStats(1, size, size, size)
