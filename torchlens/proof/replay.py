"""Recorded calls, run again: in order with everything shared as it was, or one node's ancestors alone.

What a call gets is decided by the recorded arrows only. Says what came out otherwise than in the recorded run; who is
told, and which runs are made, is `validate`'s part.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torchlens.capture.memory import Source, Workspace
from torchlens.capture.tensors import flat_tensors
from torchlens.proof.compare import difference, same_bits
from torchlens.proof.notes import Leaf, Note, Notes
from torchlens.records.ops import ArgRef
from torchlens.records.trace_data import TraceData

# Functions that return or leave memory as they find it.
_UNINITIALISED = frozenset({
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "new", "resize_",
    "resize_as_", "_empty_affine_quantized",
})  # fmt: skip

_LEVELS = frozenset({"make_dual", "_make_dual", "unpack_dual", "_unpack_dual"})


class Disagreement(Exception):  # noqa: N818 - not an error: what a proof looks for
    """The recording and what it is about do not fit. check: see `records.proof.CHECKS`."""

    def __init__(self, check: str, what: str) -> None:
        super().__init__(what)
        self.check, self.what = check, what


class Replay:
    """One execution of nodes of a trace, in their order, on copies of what no call made.

    values: what each output is now, by (node, output); None where nothing comparable is known.
    """

    def __init__(self, data: TraceData, notes: Notes, written: frozenset[int]) -> None:
        self._data, self._notes = data, notes
        self._space = Workspace(notes.copies, written)
        self._objects: dict[int, torch.Tensor | None] = {}
        self.values: dict[tuple[int, int], torch.Tensor | None] = {}

    # -- one node
    def run(self, node: int) -> None:
        """Compute one node. Raises Disagreement if its arrows or its values are not those of the recorded run."""
        try:
            self._compute(node)
            self._compare(node)
        except Disagreement:
            self.take_recorded(node)
            raise

    def _compute(self, node: int) -> None:
        nodes = self._data.nodes
        kind, refs = nodes.kind[node], [ref for ref in nodes.parents[node] if not ref.late]
        if kind in ("op", "buffer") and not nodes.synthetic[node] and self.blank(node):
            self.take_recorded(node)
        elif kind == "op" and not nodes.synthetic[node]:
            self._call(node, self.note(node))
        elif kind == "buffer" and refs:
            self._set(node, 0, self._object(self._notes.lives[node][0]))
        elif refs:
            for ref in refs:
                output = int(ref.position[0]) if kind == "op" else 0  # a synthetic identity hands its arguments on
                self._set(node, output, self._read(ref.node, ref.output))
        elif kind == "output" and not nodes.params[node]:
            raise Disagreement("outputs", "no node made this output")
        else:
            self._set(node, 0, self._object(self._notes.lives[node][0]))

    def note(self, node: int) -> Note:
        """The call to make for an op: as the user wrote it if the recorded arguments are those, else the inner one."""
        outer = self._notes.outer.get(node)
        if outer is not None:
            places = {leaf.position for leaf in outer.leaves}
            if all(ref.position in places for ref in self._data.nodes.parents[node]):
                return outer
        return self._notes.inner[node]

    def blank(self, node: int) -> str:
        """Why a node cannot be compared, "" if it can."""
        nodes, notes = self._data.nodes, self._notes
        if nodes.kind[node] != "op" or nodes.synthetic[node]:
            writers = nodes.parents[node] if nodes.kind[node] == "buffer" else ()
            opaque = any(nodes.kind[ref.node] == "op" and self.blank(ref.node) for ref in writers)
            return notes.blank.get(node, "it was written by a call that is not repeated" if opaque else "")
        if nodes.func[node] in _UNINITIALISED:
            return "uninitialised memory"
        if nodes.func[node] in _LEVELS:
            return "a level of forward-mode differentiation, which is over"
        note = notes.inner.get(node)
        if note is None:
            return "no call of torch made it that could be repeated"
        if note.code or node in notes.blank:
            return note.code or notes.blank[node]
        for leaf in note.leaves:
            if leaf.node in notes.blank:
                return f"it reads {notes.blank[leaf.node]}"
            source = notes.sources.get(id(leaf.live)) if leaf.node < 0 else None
            if source is not None and source.storage is None and source.kept is None:
                return "it reads a tensor that cannot be copied"
        return ""

    def _call(self, node: int, note: Note) -> None:
        tensors = self.arguments(node, note)
        if None in tensors.values():
            raise Disagreement("replay", "an argument has no value to replay with")
        for leaf, tensor in tensors.items():
            if leaf.wants_grad and tensor is not None and tensor.is_leaf and not tensor.requires_grad:
                tensor.requires_grad_()  # `x.requires_grad_()` is no op of the trace
        try:
            out = note.call(tensors)  # type: ignore[arg-type]
        except Exception as error:
            raise Disagreement("replay", f"it raises {type(error).__name__}: {error}") from error
        flat = flat_tensors(out)
        for output, (where, index) in enumerate(note.places):
            if where == "out" and index >= len(flat):
                raise Disagreement("replay", f"{len(flat)} outputs instead of {len(note.places)}")
            got = flat[index] if where == "out" else tensors[note.leaves[index]]
            self._set(node, output, got)
            self._objects[id(note.outs[output])] = got

    def arguments(self, node: int, note: Note) -> dict[Leaf, torch.Tensor | None]:
        """The tensors that the recorded arrows lead to, for every tensor argument of a call."""
        refs = self._arrows(node, note)
        found: dict[Leaf, torch.Tensor | None] = {}
        for leaf in note.leaves:
            ref = refs.pop(leaf.position, None)
            if ref is None:
                if leaf.node >= 0 or leaf.state <= 0:
                    raise Disagreement("parents", f"no arrow leads to the argument at {_place(leaf.position)}")
                if leaf.state - 1 not in self._data.nodes.params[node]:
                    raise Disagreement("parents", f"the parameter at {_place(leaf.position)} is not named")
                found[leaf] = self._object(leaf.live)
            elif (ref.node, ref.output) != (leaf.node, leaf.output):
                raise Disagreement(
                    "parents",
                    f"the argument at {_place(leaf.position)} is output {leaf.output} of {self._label(leaf.node)}, "
                    f"the arrow says output {ref.output} of {self._label(ref.node)}",
                )
            else:
                found[leaf] = self._read(ref.node, ref.output)
        if refs:
            raise Disagreement("parents", f"no tensor is at {_place(next(iter(refs)))}, where an arrow leads")
        return found

    def _arrows(self, node: int, note: Note) -> dict[tuple[int | str, ...], ArgRef]:
        """The arrows of an op by the position of the argument in the call that is made."""
        refs = [ref for ref in self._data.nodes.parents[node] if not ref.late]
        if node not in self._notes.renamed or note is not self._notes.inner[node]:
            return {ref.position: ref for ref in refs}
        # The recorded positions are those of another call, whose arguments this one got in another order.
        found: dict[tuple[int | str, ...], ArgRef] = {}
        for leaf in note.leaves:
            match = next((ref for ref in refs if (ref.node, ref.output) == (leaf.node, leaf.output)), None)
            if match is not None:
                refs.remove(match)
                found[leaf.position] = match
        return found | {ref.position: ref for ref in refs}

    def _read(self, node: int, output: int) -> torch.Tensor | None:
        if (node, output) not in self.values:
            raise Disagreement("ancestors", f"output {output} of {self._label(node)} is not there when it is read")
        return self.values[node, output]

    def _compare(self, node: int) -> None:
        if self.blank(node):
            return
        for output, want in enumerate(self._notes.values[node]):
            if want is None:
                continue
            what = difference(self.values.get((node, output)), want)
            if what:
                raise Disagreement("replay", f"output {output}: {what}" if output else what)

    def take_recorded(self, node: int) -> None:
        """Give a node the values of the recorded run, so that what comes after it can be compared by itself."""
        note = self._notes.inner.get(node)
        outs = note.outs if note else self._notes.lives.get(node, [])
        for output, want in enumerate(self._notes.values[node]):
            live = outs[output] if output < len(outs) else None
            held = self._objects.get(id(live)) if live is not None else None
            if want is not None and held is not None and _geometry(held) == _geometry(want):
                with torch.inference_mode(held.is_inference()), torch.no_grad():
                    held.detach().copy_(want)
                self._set(node, output, held)
                continue
            fresh = None if want is None else want.clone()
            self._set(node, output, fresh)
            if live is not None:
                self._objects[id(live)] = fresh

    def _set(self, node: int, output: int, tensor: torch.Tensor | None) -> None:
        self.values[node, output] = tensor

    def _object(self, live: torch.Tensor) -> torch.Tensor | None:
        """What stands for a tensor that no call made, or for one that some node made already."""
        if id(live) not in self._objects:
            source: Source | None = self._notes.sources.get(id(live))
            self._objects[id(live)] = None if source is None else self._space.tensor(source)
        return self._objects[id(live)]

    def _label(self, node: int) -> str:
        return self._data.nodes.label[node] if 0 <= node < len(self._data.nodes) else "nothing"

    def reads_changed(self, tensors: dict[Leaf, torch.Tensor | None]) -> bool:
        """Whether an argument does not hold any more what the node that it comes from made."""
        for leaf, tensor in tensors.items():
            made = self._notes.values[leaf.node][leaf.output] if leaf.node >= 0 else None
            if tensor is not None and made is not None and not same_bits(tensor, made):
                return True
        return False


def ancestors(data: TraceData, node: int) -> list[int]:
    """A node and all that its recorded arrows lead back to, late writers included, in order."""
    found, waiting = {node}, [node]
    while waiting:
        for ref in data.nodes.parents[waiting.pop()]:
            if ref.node not in found:
                found.add(ref.node)
                waiting.append(ref.node)
    return sorted(found)


def from_ancestors(data: TraceData, notes: Notes, written: frozenset[int], order: Iterable[int]) -> tuple[int, str]:
    """Compute these nodes and no others; gives the first that is not as recorded and why, (-1, "") if all are."""
    replay = Replay(data, notes, written)
    for node in order:
        try:
            replay.run(node)
        except Disagreement as problem:
            return node, problem.what
    return -1, ""


def _geometry(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.layout


def _place(position: tuple[int | str, ...]) -> str:
    return ".".join(str(step) for step in position)
