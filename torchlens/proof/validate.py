"""The proof of one recording: several runs of the model from one state, and replays of what was recorded.

Everything is put back at the end, also when the forward raises. Knows of no face: gives plain facts.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePath

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from torchlens.analysis import finish
from torchlens.analysis.recording import record
from torchlens.base.errors import UnavailableError
from torchlens.capture import patches
from torchlens.capture.memory import Copies, ModelState
from torchlens.capture.session import Session
from torchlens.capture.tensors import flat_tensors
from torchlens.capture.values import Payloads
from torchlens.inputs.leaves import leaves
from torchlens.proof.compare import difference, no_values, same_bits
from torchlens.proof.notes import NotingRecorder
from torchlens.proof.perturb import Perturbation, changes, known_unused
from torchlens.proof.replay import Disagreement, Replay, ancestors, from_ancestors
from torchlens.records.proof import Failure, NotCompared, Unshown, ValidationReport
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.records.trace_data import TraceData
from torchlens.settings.capture_options import CaptureOptions

# Columns of which two recordings of one run must agree.
_FACTS = (
    "label", "kind", "func", "path", "parents", "outs", "call", "params", "buffers", "inplace", "synthetic",
    "composite",
)  # fmt: skip


@dataclass(slots=True)
class Recorded:
    """What the noted run left: the trace, the recorder with its notes, the kept values.

    born: constants whose tensor did not exist when the forward began, if that was asked.
    """

    data: TraceData
    recorder: NotingRecorder
    payloads: Payloads | None
    born: list[int]


def validate(
    model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object], *, perturb: bool, budget: int
) -> ValidationReport:
    """Prove one recording of a model. Raises what its forward raises.

    budget: how many nodes may be computed for that of nodes from their ancestors alone, in multiples of their count.
    """
    tensors = [tensor for _, tensor in leaves((args, dict(kwargs)))]
    state = ModelState(model, tensors)
    try:
        lazy = any(is_lazy(value) for module in model.modules() for value in _own_state(module))
        proof = Proof(model, args, kwargs, state)
        if lazy:
            proof.report.notes.append("lazy parameters have got their shapes: no other run starts where this one did")
        else:
            proof.compare_runs()
            proof.look_for_lost_calls()
        proof.replay(perturb=perturb)
        proof.replay_ancestors(budget)
        return proof.report
    finally:
        state.restore()


def record_noted(
    model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object], copies: Copies, *, dated: bool = False
) -> Recorded:
    """One recording with notes and values; dated: find out what was born in it. Raises what the forward raises."""
    with torch._C.DisableTorchFunction():
        session = Session(model, CaptureOptions(save="all"), lambda log: NotingRecorder(log, copies))
    recorder = session.recorder
    assert isinstance(recorder, NotingRecorder)
    before = _tensors_alive() if dated else {}
    with patches.watching(session):
        _, raised = session.run(args, dict(kwargs))
        if raised:
            raise raised.pop()
        with torch._C.DisableTorchFunction():
            data = finish.build(recorder, model, Outcome(), InputProvenance("user"))
            session.complete(data)
    lives = {node: live[0] for node, live in recorder.notes.lives.items() if data.nodes.kind[node] == "constant"}
    born = [node for node, live in lives.items() if dated and id(live) not in before]
    return Recorded(data, recorder, session.log.payloads, born)


class Proof:
    """The noted run of a model, and everything it is compared with."""

    def __init__(
        self, model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object], state: ModelState
    ) -> None:
        self._model, self._args, self._kwargs, self._state = model, args, kwargs, state
        recorded = record_noted(model, *self._arguments(), state.copies)
        self.data, self.notes, self._recorded = recorded.data, recorded.recorder.notes, recorded
        self.report = ValidationReport(type(model).__name__, len(self.data.op_indexes))
        self.report.notes += recorded.data.outcome.advisories
        self._check_values()
        self._after = state.contents()
        self._written = self._written_storages()
        self._stale: dict[int, None] = {}

    def _arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        """The caller's arguments in new containers, which the forward may change."""
        return tuple(_fresh(value) for value in self._args), {key: _fresh(v) for key, v in self._kwargs.items()}

    # -- reports
    def _fail(self, check: str, what: str, node: int = -1) -> None:
        if node < 0:
            self.report.failures.append(Failure("", "", check, what))
            return
        site = self.data.nodes.site[node]
        place = f"{PurePath(site.file).name}:{site.line}" if site else ""
        self.report.failures.append(Failure(self.data.nodes.label[node], place, check, what))

    # -- the noted run itself
    def _check_values(self) -> None:
        """A kept value is that of its call, or it is refused."""
        payloads = self._recorded.payloads
        for node, wanted in self.notes.values.items():
            try:
                kept = flat_tensors(payloads.value(node, "")) if payloads else []
            except UnavailableError:
                continue
            for got, want in zip(kept, wanted, strict=False):
                if want is not None and not no_values(got) and not same_bits(got, want):
                    self._fail("values", f"the kept value is another one: {difference(got, want)}", node)
                    break

    def _written_storages(self) -> frozenset[int]:
        """Storages that somebody may have written in the noted run, so that a replay needs its own copy."""
        written = set(self._state.copies.changed())
        for node, note in self.notes.inner.items():
            if self.data.nodes.inplace[node] or note.code:
                for leaf in note.leaves:
                    source = self.notes.sources.get(id(leaf.live))
                    if source is not None and source.storage is not None:
                        written.add(source.storage)
                    written.update(_storage_key(leaf.live))
        return frozenset(written)

    # -- other runs
    def compare_runs(self) -> None:
        """An ordinary recording has the same graph, and a plain run the same result and the same state after it."""
        self._state.restore()
        again, raised = record(self._model, *self._arguments(), options=CaptureOptions(save="none"))
        if raised:
            self._fail("recording", f"a second recording raised {type(raised[0]).__name__}: {raised.pop()}")
        else:
            self._compare_recordings(again.data)
        self._state.restore()
        problems = self._plain_run()
        if problems and torch.backends.mha.get_fastpath_enabled():
            # Torch's fast path is off while functions are watched; padded positions come out otherwise with it.
            self._state.restore()
            torch.backends.mha.set_fastpath_enabled(False)
            try:
                slow = self._plain_run()
            finally:
                torch.backends.mha.set_fastpath_enabled(True)
            if not slow:
                self.report.notes.append(f"a plain run agrees without torch's encoder fast path only: {problems[0][1]}")
                problems = []
        for check, what in problems:
            self._fail(check, what)

    def _compare_recordings(self, other: TraceData) -> None:
        mine, others = self.data.nodes, other.nodes
        if len(mine) != len(others):
            self._fail("recording", f"{len(others)} nodes instead of {len(mine)}")
        for node in range(min(len(mine), len(others))):
            for name in _FACTS:
                if getattr(mine, name)[node] != getattr(others, name)[node]:
                    what = f"{name} is {getattr(others, name)[node]} instead of {getattr(mine, name)[node]}"
                    self._fail("recording", what, node)
                    return

    def _plain_run(self) -> list[tuple[str, str]]:
        with ExitStack() as stack:
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            args, kwargs = self._arguments()
            result = self._model(*args, **kwargs)
        problems: list[tuple[str, str]] = []
        outputs = [node for node, kind in enumerate(self.data.nodes.kind) if kind == "output"]
        found = list(leaves(result))
        if len(found) != len(outputs):
            return [("rerun", f"{len(found)} output tensors instead of {len(outputs)}")]
        for node, (_, tensor) in zip(outputs, found, strict=True):
            want = self.notes.values[node][0]
            what = "" if want is None or no_values(tensor) else difference(tensor, want)
            if what:
                problems.append(("rerun", f"{self.data.nodes.label[node]}: {what}"))
        contents = self._state.contents()
        if len(contents) != len(self._after):
            problems.append(("state", "another number of tensors"))
        for k, (got, want) in enumerate(zip(contents, self._after, strict=False)):
            if what := difference(got, want):
                problems.append(("state", f"{self._state.names[k]}: {what}"))
        return problems

    def look_for_lost_calls(self) -> None:
        """A constant that was made during the forward is what a call left that nobody recorded.

        It is wrong if it comes from a tensor: if autograd says so, or if it differs when inputs and parameters do.
        """
        if "constant" not in self.data.nodes.kind:
            return
        self._state.restore()
        dated = record_noted(self._model, *self._arguments(), Copies(), dated=True)
        if dated.data.nodes.kind != self.data.nodes.kind:
            self._fail("recording", "a second recording has other nodes")
            return
        lives = dated.recorder.notes.lives
        computed = {node for node in dated.born if lives[node][0].grad_fn is not None}
        suspects = [node for node in dated.born if node not in computed]
        computed |= self._moved_with_inputs(suspects) if suspects else set()
        for node in dated.born:
            if node in computed:
                self._fail("parents", "it was computed from other tensors by a call that was not recorded", node)
            else:
                reason = "made during the forward by means that no function mode sees"
                self.report.not_compared.append(NotCompared(self.data.nodes.label[node], reason))

    def _moved_with_inputs(self, nodes: list[int]) -> set[int]:
        self._state.restore()
        random = torch.Generator().manual_seed(1)
        self._state.change(lambda tensor: next(changes(tensor, random), None))
        try:
            other = record_noted(self._model, *self._arguments(), Copies())
        except Exception:  # noqa: BLE001 - the model may refuse such values
            return set()
        if other.data.nodes.kind != self.data.nodes.kind:  # another way was taken
            return set()
        pairs = {node: (self.notes.values[node][0], other.recorder.notes.values[node][0]) for node in nodes}
        return {n for n, (a, b) in pairs.items() if a is not None and b is not None and not same_bits(a, b)}

    # -- replays
    def replay(self, *, perturb: bool) -> None:
        """Run every node in order, each on what its arrows lead to."""
        self._state.restore()
        replay = Replay(self.data, self.notes, self._written)
        for node, kind in enumerate(self.data.nodes.kind):
            reason = replay.blank(node)
            if kind == "op" and not self.data.nodes.synthetic[node] and not reason:
                self._look_at_arguments(replay, node, perturb=perturb)
            try:
                replay.run(node)
            except Disagreement as problem:
                self._fail(problem.check, problem.what, node)
            if reason:
                self.report.not_compared.append(NotCompared(self.data.nodes.label[node], reason))
            elif kind == "op":
                self.report.replayed += 1

    def _look_at_arguments(self, replay: Replay, node: int, *, perturb: bool) -> None:
        """Whether an argument was overwritten since it was made, and whether each matters."""
        try:
            note = replay.note(node)
            found = replay.arguments(node, note)
        except Disagreement:  # said by the run that follows
            return
        if replay.reads_changed(found):
            self._stale[node] = None
        tensors = {leaf: tensor for leaf, tensor in found.items() if tensor is not None}
        if not perturb or len(tensors) < len(found) or not tensors:
            return
        name, label = self.data.nodes.func[node], self.data.nodes.label[node]
        trial = Perturbation(note, tensors)
        late = [ref for ref in self.data.nodes.parents[node] if ref.late]
        for leaf in note.leaves:
            self.report.arguments += 1
            if not trial.shows(leaf):
                by = "table" if known_unused(name, leaf.position) else "search"
                self.report.unshown.append(Unshown(label, leaf.position, by))
            for ref in late:
                if ref.position == leaf.position:
                    self.report.arguments += 1
                    written = [t for (n, _), t in replay.values.items() if n == ref.node and t is not None]
                    if not trial.shows_write(leaf, written):
                        self.report.unshown.append(Unshown(label, (*leaf.position, "late"), "search"))

    def replay_ancestors(self, budget: int) -> None:
        """Compute outputs, readers of overwritten tensors and a sample of ops from their recorded ancestors alone."""
        nodes = self.data.nodes
        outputs = [node for node, kind in enumerate(nodes.kind) if kind == "output"]
        late = [node for node, refs in enumerate(nodes.parents) if any(ref.late for ref in refs)]
        needed = list(dict.fromkeys([*outputs, *late, *self._stale]))
        ops = self.data.op_indexes
        sample = ops[:: max(1, len(ops) // 8)]
        left = max(1, budget) * len(nodes)
        done = 0
        broken = {failure.label for failure in self.report.failures}
        for node in dict.fromkeys([*needed, *sample]):
            order = ancestors(self.data, node)
            if left < len(order):
                continue
            left -= len(order)
            self._state.restore()
            at, what = from_ancestors(self.data, self.notes, self._written, order)
            done += node in needed
            if at >= 0 and nodes.label[at] not in broken:
                broken.add(nodes.label[at])
                self._fail("ancestors", what, at)
        self.report.ancestors = (done, len(needed))


def _own_state(module: nn.Module) -> list[torch.Tensor]:
    return [value for table in (module._parameters, module._buffers) for value in table.values() if value is not None]


def _tensors_alive() -> dict[int, torch.Tensor]:
    """Every tensor object of the process, held so that its id stays its own."""
    return {id(thing): thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)}


def _storage_key(tensor: torch.Tensor) -> list[int]:
    try:
        return [tensor.untyped_storage()._cdata]
    except (RuntimeError, NotImplementedError):
        return []


def _fresh(value: object, depth: int = 6) -> object:
    """The value in new lists, tuples and dicts; anything else is handed on."""
    if depth and type(value) is dict:
        return {key: _fresh(part, depth - 1) for key, part in value.items()}
    if depth and type(value) in (list, tuple):
        parts = [_fresh(part, depth - 1) for part in value]  # type: ignore[attr-defined]
        return parts if type(value) is list else tuple(parts)
    return value
