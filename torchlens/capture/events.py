"""What the handler appends: one tuple per node, and the tuple that stands for one live tensor.

Plain tuples with named positions, because one is made per recorded call: a slotted object costs several times more.
"""

from __future__ import annotations

from typing import NamedTuple

INPUT, OP, BUFFER, CONSTANT, OUTPUT = range(5)
KIND_NAMES = ("input", "op", "buffer", "constant", "output")


class Known(NamedTuple):
    """What is known of one live tensor object; documents the positions of the tuples kept in `TensorTable`.

    ref: weak reference to the tensor, the proof that an id still means it; node: index of the event that made it, -1
    for a parameter or buffer not yet read as a node; output: which output of that event; version: the tensor's
    version counter then (-1 for inference tensors); spec: its `TensorSpec`; state: 0, or 1 + index of a parameter, or
    -1 - index of a buffer; late: events that wrote to its storage through another alias since.
    """

    ref: object
    node: int
    output: int
    version: int
    spec: object
    state: int
    late: tuple[int, ...]


class Event(NamedTuple):
    """One node of the trace; documents the positions of the tuples in `Recorder.events`.

    info: the `FunctionInfo` of an op, else None; parents: (node, output, position, late) per tensor read; args and
    kwargs: the call's arguments with every tensor replaced by its spec; outs: specs of the outputs; nanoseconds: wall
    clock of the call alone; call: index of the module call; site: flat (code, instruction) pairs, innermost first;
    params and buffers: indexes read; inplace: an argument was written; value: Python value of a 0-dim output;
    path: address of inputs, outputs, buffers and constants.
    """

    kind: int
    info: object
    parents: tuple[tuple[int, int, tuple[int | str, ...], bool], ...]
    args: tuple[object, ...]
    kwargs: dict[str, object] | None
    outs: tuple[object, ...]
    nanoseconds: int | None
    call: int
    site: tuple[object, ...]
    params: tuple[int, ...]
    buffers: tuple[int, ...]
    inplace: bool
    value: object
    path: str
