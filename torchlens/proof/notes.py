"""A recorder that also notes what a replay needs: every call as it was made, its surroundings, and what it returned.

Used for validation only. It looks at calls from around the ordinary recorder and changes nothing of what that one
writes down; it must not know how a replay goes.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import IDENTITY, EventLog
from torchlens.capture.events import OP, Event
from torchlens.capture.functions import OPEN, FunctionInfo, info_of
from torchlens.capture.memory import Copies, Source
from torchlens.capture.tensors import flat_tensors, undispatched, version_of
from torchlens.proof.compare import no_values

Position = tuple[int | str, ...]
_AUTOCAST = ("cpu", "cuda")
_CODE = (types.FunctionType, types.MethodType, functools.partial, nn.Module)


class Leaf:
    """One tensor among the arguments of a call: where, which object, and where the recorder says it came from.

    node is -1 for a parameter, whose index is state - 1; wants_grad: it is where a graph begins.
    """

    __slots__ = ("live", "node", "output", "position", "state", "version", "wants_grad")

    def __init__(self, live: torch.Tensor, position: Position) -> None:
        self.live, self.position = live, position
        self.node, self.output, self.state, self.version = -1, 0, 0, 0
        self.wants_grad = False


class Stream(NamedTuple):
    """A random generator among the arguments, as it was."""

    device: torch.device
    state: torch.Tensor


class Surroundings(NamedTuple):
    """What beside its arguments decides on the result of a call. autocast: enabled and dtype, for the CPU and CUDA."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[bool, torch.dtype], ...]
    dtype: torch.dtype

    @classmethod
    def now(cls) -> Surroundings:
        """Those of this moment."""
        autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in _AUTOCAST)
        return cls(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast, torch.get_default_dtype())

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Run the body in these surroundings."""
        now = Surroundings.now()
        with ExitStack() as stack:
            if now == self:
                yield
                return
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for kind, wanted, present in zip(_AUTOCAST, self.autocast, now.autocast, strict=True):
                if wanted != present:
                    stack.enter_context(torch.autocast(kind, dtype=wanted[1], enabled=wanted[0]))
            torch.set_default_dtype(self.dtype)
            stack.callback(torch.set_default_dtype, now.dtype)
            yield


class Note:
    """One call: its arguments with a `Leaf` for every tensor, its surroundings, the random streams if it took from one.

    outs: the live tensor of each output of the event; places: how a call hands each over, ("out", index in the flat
    result) or ("arg", index of the leaf it wrote); code: why it cannot be called again, "" if it can.
    """

    __slots__ = ("args", "code", "func", "kwargs", "leaves", "outs", "places", "streams", "surroundings")

    def __init__(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> None:
        self.func, self.leaves, self.code = func, list[Leaf](), ""
        self.args = [self._template(value, (i,)) for i, value in enumerate(args)]
        self.kwargs = {key: self._template(value, (key,)) for key, value in (kwargs or {}).items()}
        self.surroundings = Surroundings.now()
        self.streams: tuple[Any, ...] | None = None
        self.outs: list[torch.Tensor] = []
        self.places: list[tuple[str, int]] = []

    def _template(self, value: Any, position: Position) -> Any:
        """The argument with leaves for tensors; containers are entered where the recorder enters them."""
        if isinstance(value, torch.Tensor):
            self.leaves.append(Leaf(value, position))
            return self.leaves[-1]
        if isinstance(value, torch.Generator):
            return Stream(value.device, value.get_state())
        if isinstance(value, _CODE):
            self.code = "it calls Python code that was passed to it"
        if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
            self.code = "it takes over a storage"
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            return _remade(value, [self._template(part, (*position, i)) for i, part in enumerate(value)])
        if isinstance(value, dict):
            return {key: self._template(part, (*position, str(key))) for key, part in value.items()}
        return value

    def call(self, tensors: Mapping[Leaf, torch.Tensor]) -> Any:
        """Make the call with these tensors for its leaves, in its surroundings."""
        args = [_filled(value, tensors) for value in self.args]
        kwargs = {key: _filled(value, tensors) for key, value in self.kwargs.items()}
        if self.streams is not None:
            _set_streams(self.streams)
        with self.surroundings.entered():
            return self.func(*args, **kwargs)


def _filled(value: Any, tensors: Mapping[Leaf, torch.Tensor]) -> Any:
    if isinstance(value, Leaf):
        return tensors[value]
    if isinstance(value, Stream):
        return torch.Generator(value.device).set_state(value.state)
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return _remade(value, [_filled(part, tensors) for part in value])
    if isinstance(value, dict):
        return {key: _filled(part, tensors) for key, part in value.items()}
    return value


def _remade(value: list[Any] | tuple[Any, ...], parts: list[Any]) -> Any:
    """The parts in a container like the given one."""
    if isinstance(value, list):
        return parts
    if type(value).__module__ == "torch.return_types":
        return type(value)(parts)
    make = getattr(type(value), "_make", None)
    return make(parts) if make else tuple(parts)


class Notes:
    """What was noted in one run, by node.

    inner: the call that ran; outer: the call as the user wrote it, where the op bears its name and it can stand for
    the inner one; renamed: ops that bear a name other than their inner call's; values: copies of the outputs, None for
    one without comparable values; blank: the reason for that; lives: the tensor behind every node that is not a call;
    sources: what no call made, by id of the tensor.
    """

    def __init__(self, log: EventLog, copies: Copies) -> None:
        self._log, self.copies = log, copies
        self.inner: dict[int, Note] = {}
        self.outer: dict[int, Note] = {}
        self.renamed: set[int] = set()
        self.values: dict[int, list[torch.Tensor | None]] = {}
        self.blank: dict[int, str] = {}
        self.lives: dict[int, list[torch.Tensor]] = {}
        self.sources: dict[int, Source] = {}
        self._alive: list[object] = []  # ids name tensors in these tables
        self._made: set[int] = set()
        self._pending: Note | None = None

    def begins(self, note: Note) -> None:
        """Note where the arguments come from, now that the recorder has looked at them all."""
        for leaf in note.leaves:
            self._locate(leaf)
        self._pending = note

    def _locate(self, leaf: Leaf) -> None:
        entry = self._log.tensors.find(leaf.live)
        if entry is not None:
            leaf.node, leaf.output, leaf.state = entry.node, entry.output, entry.state
        leaf.version = version_of(leaf.live)
        leaf.wants_grad = leaf.live.requires_grad and leaf.live.is_leaf
        if leaf.node < 0:
            self._meet(leaf.live)

    def _meet(self, tensor: torch.Tensor) -> None:
        if id(tensor) not in self.sources:
            self.sources[id(tensor)] = self.copies.meet(tensor)
            self._alive.append(tensor)

    def saw(self, node: int, out: object) -> None:
        """Keep the values of a node; the event log calls this after each."""
        event, flat = self._log.events[node], flat_tensors(out)
        self._alive.append(flat)
        if event.kind != OP or event.info is IDENTITY:
            self.lives[node] = flat
            # A buffer that an opaque call wrote is first met here.
            if event.kind != OP and not (event.parents and id(flat[0]) in self._made):
                self._meet(flat[0])
            self._keep(node, flat)
            return
        note, self._pending = self._pending, None
        if note is None:  # the whole of an opened function is the op: known when that returns
            self._keep(node, flat)
            return
        note.places = [("out", i) for i in range(len(note.outs))]
        self._add_written(note, node, event)
        self.inner[node] = note
        self._made.update(map(id, note.outs))
        self._keep(node, note.outs)

    def _add_written(self, note: Note, node: int, event: Event) -> None:
        """Outputs that the call wrote instead of returning them: tensors at their number, then buffers in order."""
        written: dict[int, int] = {}
        buffers: list[int] = []
        for i, leaf in enumerate(note.leaves):
            entry = self._log.tensors.find(leaf.live)
            if entry is not None and entry.node == node and entry.output >= len(note.outs):
                written.setdefault(entry.output, i)
            elif leaf.state < 0 and (version_of(leaf.live) != leaf.version or leaf.version < 0):
                buffers.append(i)
        for output in range(len(note.outs), len(event.outs)):
            found = written.get(output, buffers.pop(0) if output not in written and buffers else None)
            if found is None:
                note.code = "which tensors it wrote is not known"
                return
            note.outs.append(note.leaves[found].live)
            note.places.append(("arg", found))

    def _keep(self, node: int, tensors: Iterable[torch.Tensor]) -> None:
        rows: list[torch.Tensor | None] = []
        for tensor in tensors:
            reason = no_values(tensor)
            if reason:
                self.blank[node] = reason
            rows.append(None if reason else undispatched(lambda tensor=tensor: tensor.detach().clone()))
        self.values[node] = rows

    def opened(self, node: int, outer: Note, out: object) -> None:
        """Note the call as the user wrote it, if replaying it says the same about every argument and output."""
        inner, flat = self.inner.get(node), flat_tensors(out)
        if inner is None:
            for leaf in outer.leaves:
                self._locate(leaf)
            outer.outs, outer.places = flat, [("out", i) for i in range(len(flat))]
            self.inner[node] = outer
            return
        self.renamed.add(node)
        made = {id(leaf.live): leaf for leaf in inner.leaves}
        if {id(leaf.live) for leaf in outer.leaves} != made.keys():
            return
        returned = {id(tensor): ("out", i) for i, tensor in reversed(list(enumerate(flat)))}
        places = [returned.get(id(tensor)) for tensor in inner.outs]
        for leaf in outer.leaves:
            source = made[id(leaf.live)]
            leaf.node, leaf.output, leaf.state = source.node, source.output, source.state
            leaf.wants_grad = source.wants_grad
        if None not in places:
            outer.outs, outer.places = inner.outs, [place for place in places if place is not None]
            outer.code = inner.code
            self.outer[node] = outer


class NotingRecorder(Recorder):
    """The ordinary recorder with notes; its shortcuts are off, so that every call passes through `record`."""

    fast = False

    def __init__(self, log: EventLog, copies: Copies) -> None:
        super().__init__(log)
        self.notes = Notes(log, copies)
        log.observers = (*log.observers, self.notes)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """As the recorder does; a call of an opened function is noted too."""
        info = info_of(func)
        if info.action != OPEN:
            return super().__torch_function__(func, types, args, kwargs)
        log, outer = self.log, Note(info.func, args, kwargs)
        before, streams = log.op_count, _streams()
        out = super().__torch_function__(func, types, args, kwargs)
        if log.op_count == before + 1:
            named = log.events[log.last_op].info
            if named is not None and named.func is info.func:
                outer.streams = _taken(streams)
                with torch._C.DisableTorchFunction():
                    self.notes.opened(log.last_op, outer, out)
        return out

    def record(
        self,
        info: FunctionInfo,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        **known: Any,
    ) -> Any:
        """As the recorder does, with a note of the call."""
        note = Note(func, args, kwargs)
        # State that an opaque call reads by itself is no argument, but arrows lead from it.
        note.leaves += [Leaf(tensor, (name,)) for name, tensor in (known.get("state") or {}).items()]

        def call(*own: Any, **named: Any) -> Any:
            with torch._C.DisableTorchFunction():
                self.notes.begins(note)
            streams = _streams()
            out = func(*own, **named)
            note.streams = _taken(streams)
            note.outs = flat_tensors(out)
            if known.get("written"):
                note.code = "it writes state that is not among its arguments"
            return out

        return super().record(info, call, args, kwargs, **known)


def _streams() -> tuple[Any, ...]:
    """State of the default generators."""
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return (undispatched(torch.get_rng_state), *devices)


def _taken(before: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The states before, if somebody has taken from a generator since."""
    now = _streams()
    # A dispatch mode of the user must not see that somebody looks.
    same = undispatched(lambda: all(torch.equal(*pair) for pair in zip(before, now, strict=True)))
    return None if same else before


def _set_streams(streams: tuple[Any, ...]) -> None:
    torch.set_rng_state(streams[0])
    if len(streams) > 1:
        torch.cuda.set_rng_state_all(list(streams[1:]))
