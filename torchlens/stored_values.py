"""The tensors of a saved trace: what is stored of each memory, and how tensors are made of it again on first use.

Tensors that share memory share it in the file, too: what is stored are ranges of bytes, each once, and a tensor is a
view of one. A range that one contiguous tensor fills is stored under its own shape and dtype, so that any reader of
the format finds it by the label of its op. Files and records are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from safetensors import SafetensorError

from torchlens.base.errors import error, fail, first_line
from torchlens.capture.tensors import PLAIN_TYPES, extent, undispatched, version_of
from torchlens.records.codec import Decoder, Encoder, Json

# Source: the dtypes of the safetensors format that every version of it knows.
CODES = {
    "float64": "F64", "int64": "I64", "float32": "F32", "int32": "I32", "float16": "F16", "bfloat16": "BF16",
    "int16": "I16", "uint8": "U8", "int8": "I8", "bool": "BOOL",
}  # fmt: skip
# A complex number is stored as its two parts, as `torch.view_as_real` shows it.
_PARTS = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}
# No element of any dtype is wider; a range of mixed dtypes begins and ends at a multiple.
_WIDEST = 16
_UNREADABLE = (RuntimeError, NotImplementedError, ValueError, TypeError, AttributeError)
_RESULT_TYPES = frozenset({*PLAIN_TYPES, list, tuple, dict, type(None), bool, int, float, complex, str})


@dataclass(slots=True)
class Range:
    """Bytes of one storage that are stored under one key.

    storage: what holds them; first, last: the range of bytes, which may go past its end; code, shape: dtype and shape
    in the file; width: bytes of which it is a multiple.
    """

    key: str
    storage: torch.UntypedStorage
    first: int
    last: int
    code: str = "U8"
    shape: tuple[int, ...] = ()
    width: int = _WIDEST

    def read(self) -> memoryview:
        """The bytes, on the host; those past the end of the storage are zero."""
        with torch._C.DisableTorchFunction():
            return undispatched(self._read)

    def _read(self) -> memoryview:
        end = min(self.last, self.storage.nbytes())
        flat = torch.empty(0, dtype=torch.uint8, device=self.storage.device)
        # A copy: memory that numpy has seen cannot be resized any more, and it may be the caller's.
        flat = flat.set_(self.storage, self.first, (end - self.first,), (1,)).cpu().clone()
        if end < self.last:
            flat = torch.cat([flat, flat.new_zeros(self.last - end)])
        return memoryview(cast("bytes", flat.numpy()))


@dataclass(slots=True)
class _Placed:
    """A tensor to be stored, in the order of arrival; home: number of its range."""

    number: int
    key: str
    tensor: torch.Tensor
    first: int
    last: int
    home: int = -1


@dataclass
class Shelf:
    """Tensors to be stored. left_out: reason per kind of tensor that has no place in a file -> the keys."""

    left_out: dict[str, list[str]] = field(default_factory=dict)
    _placed: list[_Placed] = field(default_factory=list)

    def value(self, key: str, value: object) -> Json:
        """JSON of a kept value with a number in the place of each tensor; None if a part of it cannot be stored."""
        before = len(self._placed)
        encoder = Encoder(self._hook(key))
        try:
            made = encoder.value(value)
            if encoder.left_out:
                raise _UnstorableError(f"an object of class {encoder.left_out[0].strip(': ')}")
        except (RecursionError, _UnstorableError) as cause:
            reason = str(cause) if isinstance(cause, _UnstorableError) else "a structure that is nested too deeply"
            self.left_out.setdefault(reason, []).append(key)
            del self._placed[before:]
            return None
        return made

    def _hook(self, key: str) -> Callable[[Any, Callable[[Any], Json]], Json | None]:
        count = 0

        def encode(value: Any, inner: Callable[[Any], Json]) -> Json:
            nonlocal count
            if isinstance(value, torch.Tensor):
                count += 1
                return self._place(key if count == 1 else f"{key}[{count - 1}]", value)
            if type(value).__module__ == "torch.return_types":
                return [type(value).__name__, [inner(item) for item in value]]
            return None

        return encode

    def _place(self, key: str, tensor: torch.Tensor) -> int:
        tensor = storable(tensor)
        place = extent(tensor)
        if place is None or place[2] > tensor.untyped_storage().nbytes():
            raise _UnstorableError("a tensor without memory of its own")
        number = len(self._placed)
        self._placed.append(_Placed(number, key, tensor, place[1], place[2]))
        return number

    def ranges(self) -> tuple[list[Range], list[Json]]:
        """What to store, widest elements first so that all of them are aligned, and per tensor its range and view.

        A tensor alone in its range is `[range]`; any other `[range, dtype, shape, stride, offset]`, the offset in
        elements of the dtype.
        """
        by_storage: dict[int, list[_Placed]] = {}
        for placed in self._placed:
            by_storage.setdefault(placed.tensor.untyped_storage()._cdata, []).append(placed)
        found = [made for group in by_storage.values() for made in _split(group)]
        found.sort(key=lambda pair: (-pair[0].width, min(placed.number for placed in pair[1])))
        for number, (_, members) in enumerate(found):
            for placed in members:
                placed.home = number
        views = [_view(placed, found[placed.home][0]) for placed in self._placed]
        return [made for made, _ in found], views


class _UnstorableError(Exception):
    """A tensor that no range of bytes describes."""


def storable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, or a plain copy where its bytes alone do not say what it holds."""
    if type(tensor) not in PLAIN_TYPES:
        raise _UnstorableError(f"a tensor of class {type(tensor).__name__}")
    if tensor.is_nested or tensor.layout is not torch.strided:
        raise _UnstorableError("a nested tensor" if tensor.is_nested else f"a tensor of layout {tensor.layout}")
    if tensor.is_quantized:
        raise _UnstorableError("a quantized tensor")
    if tensor.device.type == "meta":
        raise _UnstorableError("a tensor on the meta device")
    try:
        if tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():
            return undispatched(lambda: tensor.detach().resolve_conj().resolve_neg().clone())
        tensor.untyped_storage().data_ptr()
    except _UNREADABLE as cause:
        raise _UnstorableError("a tensor without memory of its own") from cause
    return tensor


def _split(group: list[_Placed]) -> list[tuple[Range, list[_Placed]]]:
    """The ranges of one storage: tensors whose bytes overlap are in one range."""
    storage = group[0].tensor.untyped_storage()
    runs: list[list[_Placed]] = []
    end = -1
    for placed in sorted(group, key=lambda one: one.first):
        if placed.first >= end:
            runs.append([])
        runs[-1].append(placed)
        end = max(end, placed.last)
    return [(_range(storage, run), run) for run in runs]


def _range(storage: torch.UntypedStorage, run: list[_Placed]) -> Range:
    first, last = run[0].first, max(placed.last for placed in run)
    whole = next((p for p in run if p.first == first and p.last == last and p.tensor.is_contiguous()), run[0])
    made = Range(whole.key, storage, first, last)
    dtypes = {placed.tensor.dtype for placed in run}
    name = _name(whole.tensor.dtype)
    part = _PARTS.get(name, name)
    if len(dtypes) > 1 or part not in CODES:
        made.first -= first % _WIDEST
        made.last += -last % _WIDEST
        made.shape = (made.last - made.first,)
        return made
    size = whole.tensor.element_size()
    made.code, made.width = CODES[part], size if part == name else size // 2
    count = (last - first) // size
    fills = whole.first == first and whole.last == last and whole.tensor.is_contiguous()
    made.shape = tuple(whole.tensor.shape) if fills else (count,)
    if part != name:
        made.shape = (*made.shape, 2)
    return made


def _view(placed: _Placed, home: Range) -> Json:
    tensor = placed.tensor
    name = _name(tensor.dtype)
    same = (home.first, home.last) == (placed.first, placed.last) and tuple(tensor.shape) == home.shape
    if same and CODES.get(name) == home.code and tensor.is_contiguous():
        return [placed.home]
    offset = (placed.first - home.first) // tensor.element_size()
    return [placed.home, name, list(tensor.shape), list(tensor.stride()), offset]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def is_plain(result: object) -> bool:
    """Whether a forward's result is tensors and numbers in plain containers, so that it can be built again."""
    waiting, seen = [result], set[int]()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        kind = type(item)
        named = isinstance(item, tuple) and (hasattr(kind, "_fields") or kind.__module__ == "torch.return_types")
        if kind not in _RESULT_TYPES and not named:
            return False
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, (list, tuple)):
            waiting += item
    return True


class StoredValues:
    """The kept values of a loaded trace, read on first use. A tensor is on the CPU whatever device it came from.

    file: open for tensors; keys, views: what `Shelf` made of the tensors; kept: JSON per node; lost: per node
    without a value the code and the words of why.
    """

    def __init__(
        self,
        file: Any,
        keys: Sequence[str],
        views: Sequence[Json],
        kept: Mapping[int, Json],
        lost: Mapping[int, tuple[str, str]],
    ) -> None:
        self._file, self._keys, self._views = file, keys, views
        self._kept, self._lost = kept, lost
        self._read: dict[int, tuple[object, list[tuple[torch.Tensor, int]]]] = {}
        self._ranges: dict[int, torch.Tensor] = {}

    def holds(self, node: int) -> bool:
        """Whether the file has the value of a node."""
        return node in self._kept

    def value(self, node: int, label: str) -> object:
        """The kept output of a node: the tensor, or the call's structure when it has several outputs.

        Raises UnavailableError[payload_unavailable, payload_overwritten] as the saved trace did, and the latter for
        what was written after loading; LoadError[load_file_invalid] if the file holds something else there.
        """
        if node not in self._kept:
            code, why = self._lost.get(node, ("payload_unavailable", "was not kept"))
            raise error(code, f"the value of {label} {why}", label=label)
        value = self.intact(node)
        if value is None:
            fail("payload_overwritten", f"the value of {label} was overwritten after loading", label=label)
        return value

    def intact(self, node: int) -> object:
        """The kept output of a node; None if there is none, or it was overwritten since it was first read."""
        if node not in self._kept:
            return None
        if node not in self._read:
            tensors: list[tuple[torch.Tensor, int]] = []
            self._read[node] = self.build(self._kept[node], tensors), tensors
        value, tensors = self._read[node]
        return value if all(version_of(tensor) == version for tensor, version in tensors) else None

    def build(self, cell: Json, made: list[tuple[torch.Tensor, int]] | None = None) -> object:
        """A structure of tensors from its JSON; made: receives each tensor with its version."""

        def decode(body: Json, inner: Callable[[Json], Any]) -> object:
            if isinstance(body, list):
                name, items = body
                return _return_type(name)(list(map(inner, items)))
            tensor = self._tensor(body)
            if made is not None:
                made.append((tensor, version_of(tensor)))
            return tensor

        try:
            # Whatever modes are on where a value is first asked for, it is an ordinary tensor.
            with torch.inference_mode(False), torch.no_grad(), torch._C.DisableTorchFunction():
                return undispatched(lambda: Decoder(hook=decode).value(cell))
        except (*_UNREADABLE, LookupError, SafetensorError) as cause:
            what = f"a value cannot be made of what the file holds: {first_line(cause)}"
            raise error("load_file_invalid", what) from cause

    def _tensor(self, number: int) -> torch.Tensor:
        home, *view = self._views[number]
        if home not in self._ranges:
            self._ranges[home] = self._file.get_tensor(self._keys[home])
        base = self._ranges[home]
        if not view:
            return base
        name, shape, stride, offset = view
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"{name} is no dtype")
        # Views, so that all of them notice a write through one of them.
        if dtype.is_complex and base.dtype.is_floating_point:
            base = torch.view_as_complex(base)
        elif dtype != base.dtype:
            base = base.view(dtype)
        return base.as_strided(shape, stride, offset)


def _return_type(name: str) -> Callable[[list[object]], object]:
    kind = getattr(torch.return_types, name)
    if not (isinstance(kind, type) and issubclass(kind, tuple)):
        raise TypeError(f"{name} is no named result of torch")
    return kind
