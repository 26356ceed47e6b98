"""The name and arguments that the user wrote, given to the one op that a Python-level torch function made."""

from __future__ import annotations

import torch

from torchlens.capture.event_log import EventLog
from torchlens.capture.events import Parent, Position
from torchlens.capture.functions import FunctionInfo
from torchlens.capture.tensors import map_tensors


def rename_last_op(log: EventLog, info: FunctionInfo, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Give the last op of a log the function and arguments that the user wrote."""
    event = log.events[log.last_op]
    log.events[log.last_op] = event._replace(
        info=info,
        parents=_renamed_parents(log, event.parents, args, kwargs),
        args=tuple(map_tensors(value, log.spec_of) for value in args),
        kwargs={key: map_tensors(value, log.spec_of) for key, value in kwargs.items()},
    )


def _renamed_parents(
    log: EventLog, parents: tuple[Parent, ...], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[Parent, ...]:
    """The same parents at the positions where the user passed them; as they were if one is not among those."""
    passed = [(t, p) for i, value in enumerate(args) for t, p in _placed(value, (i,))]
    passed += [(t, p) for key, value in kwargs.items() for t, p in _placed(value, (key,))]
    places: dict[tuple[int, int, bool], list[Position]] = {}
    for tensor, position in passed:
        entry = log.tensors.find(tensor)
        if entry is not None:
            places.setdefault((entry.node, entry.output, False), []).append(position)
            for writer in entry.late:
                places.setdefault((writer, 0, True), []).append(position)
    order = {position: k for k, (_, position) in enumerate(passed)}
    renamed: list[Parent] = []
    for node, output, _, late in parents:
        found = places.get((node, output, late))
        if not found:
            return parents
        renamed.append((node, output, found.pop(0), late))
    return tuple(sorted(renamed, key=lambda parent: order[parent[2]]))


def _placed(value: object, position: Position) -> list[tuple[torch.Tensor, Position]]:
    """Tensors of one argument with their positions."""
    if isinstance(value, torch.Tensor):
        return [(value, position)]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [pair for i, part in enumerate(value) for pair in _placed(part, (*position, i))]
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in _placed(part, (*position, str(key)))]
    return []
