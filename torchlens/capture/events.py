"""The rows that recording appends and keeps: one event per node, one entry per live tensor.

Both are named tuples, made through `tuple.__new__`, because one is made per recorded call: the generated constructors
cost several times more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from torchlens.capture.functions import FunctionInfo
from torchlens.records.tensors import TensorSpec

INPUT, OP, BUFFER, CONSTANT, OUTPUT = ("input", "op", "buffer", "constant", "output")
Position = tuple[int | str, ...]
Parent = tuple[int, int, Position, bool]


class Known(NamedTuple):
    """What is known of one live tensor object.

    ref: weak reference to the tensor, the proof that an id still means it; node: index of the event that made it, -1
    for a parameter or buffer that was not read as a node yet; output: which output of that event; version: the
    tensor's version counter then (-1 for inference tensors); state: 0, or 1 + index of a parameter, or -1 - index of
    a buffer; late: events that wrote to its storage through another alias since.
    """

    ref: Callable[[], torch.Tensor | None]
    node: int
    output: int
    version: int
    spec: TensorSpec
    state: int
    late: tuple[int, ...]


class Event(NamedTuple):
    """One node of the trace.

    info: the function of an op, None for other kinds; parents: (node, output, position, late) per tensor read; args
    and kwargs: the call's arguments with every tensor replaced by its spec; nanoseconds: wall clock of the call alone;
    call: index of the module call; site: flat (code, instruction) pairs, innermost first; params and buffers: indexes
    read; inplace: an argument was written; value: Python value of a 0-dim output; path: address of inputs, outputs,
    buffers and constants.
    """

    kind: str
    info: FunctionInfo | None
    parents: tuple[Parent, ...]
    args: tuple[object, ...]
    kwargs: dict[str, object] | None
    outs: tuple[TensorSpec, ...]
    nanoseconds: int | None
    call: int
    site: tuple[object, ...]
    params: tuple[int, ...]
    buffers: tuple[int, ...]
    inplace: bool
    value: object
    path: str


class BoolRead(NamedTuple):
    """A tensor that Python turned into a bool: a possible branch test.

    node: the event that made the tensor; site: as in `Event`; call: index of the module call; at: how many events
    there were then, which places the test among them.
    """

    node: int
    value: bool
    site: tuple[object, ...]
    call: int
    at: int


make_known: Callable[[tuple[object, ...]], Known] = partial(tuple.__new__, Known)
make_event: Callable[[tuple[object, ...]], Event] = partial(tuple.__new__, Event)
