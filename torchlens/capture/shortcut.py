"""The usual call at a fraction of the general cost: known plain tensors and plain values in, one plain tensor out.

Whatever is unusual about a call makes the answer None before anything was noted, and the general way of the event log
takes over; both ways record the same. Used while no function mode is on.
"""

from __future__ import annotations

import weakref

import torch

from torchlens.capture.event_log import ATOMS, POSITIONS, EventLog
from torchlens.capture.events import OP, Parent, make_event, make_known
from torchlens.capture.functions import FunctionInfo
from torchlens.capture.tensors import NO_SIZES, scalar_value

_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter

Glance = tuple[list[Parent], list[object], tuple[int, ...]]


class Shortcut:
    """Reads and appends for one event log. For functions that write to none of their arguments."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._known = log.tensors.known
        self._fresh = log.tensors.aliases.fresh
        self._specs = log.tensors.specs
        self._events = log.events

    def read(self, args: tuple[object, ...], kwargs: dict[str, object] | None) -> Glance | None:
        """Parents, stand-ins for the arguments, and parameters read; None if only the general way can tell."""
        known = self._known
        parents: list[Parent] = []
        stand_ins: list[object] = []
        params: tuple[int, ...] = ()
        if len(args) > len(POSITIONS) or self._log.tensors.loose:
            return None
        if kwargs and not ATOMS.issuperset(map(type, kwargs.values())):
            return None
        for i, value in enumerate(args):
            kind = type(value)
            if kind is _Tensor or kind is _Parameter:
                entry = known.get(id(value))
                if entry is None:
                    return None
                ref, node, output, version, spec, state, late = entry
                # An inference tensor has no version to ask for, and none in its entry; a lazy parameter has no shape.
                if ref() is not value or version < 0 or late or state < 0 or spec.shape is None:
                    return None
                if value._version != version:  # pyright: ignore[reportAttributeAccessIssue]
                    return None
                if node >= 0:
                    parents.append((node, output, POSITIONS[i], False))
                if state and state - 1 not in params:
                    params = (*params, state - 1)
                stand_ins.append(spec)
            elif kind in ATOMS:
                stand_ins.append(value)
            else:
                return None
        return parents, stand_ins, params

    def append(
        self, info: FunctionInfo, glance: Glance, kwargs: dict[str, object] | None, out: torch.Tensor,
        nanoseconds: int, site: tuple[object, ...],
    ) -> None:  # fmt: skip
        """Append the event of such a call that returned one plain tensor."""
        log, node = self._log, len(self._events)
        parents, stand_ins, params = glance
        try:
            spec = self._specs[(out.shape, out.dtype, out.device, out.requires_grad)]
            version = out._version
        except (KeyError, *NO_SIZES):
            _, _, _, version, spec, _, _ = log.tensors.register(out, node)
        self._known[id(out)] = make_known((weakref.ref(out), node, 0, version, spec, 0, ()))
        self._fresh.add(id(out))
        self._events.append(make_event((
            OP, info, tuple(parents), tuple(stand_ins), dict(kwargs) if kwargs else None, (spec,), nanoseconds,
            log.modules.current, site, params, (), False, None if spec.shape else scalar_value(out, spec), "",
        )))  # fmt: skip
        log.op_count += 1
        log.last_op = node
        if log.payloads is not None:
            log.payloads.keep(node, out)
        for observer in log.observers:
            observer.saw(node, out)
