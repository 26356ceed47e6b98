"""From events to `TraceData`: node order, layers and passes, labels, and the columns worked out on demand."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import nn

from torchlens.capture import callsite, schemas
from torchlens.capture.dispatch import IDENTITY, Recorder
from torchlens.capture.events import KIND_NAMES, OP, Event
from torchlens.ops import arguments, flops
from torchlens.records.flow import BranchTest
from torchlens.records.labels import Namer, op_type, pass_label
from torchlens.records.ops import ArgRef, CallSite, LayerRecord
from torchlens.records.provenance import Environment, InputProvenance, Outcome
from torchlens.records.trace_data import Deferred, NodeTable, TraceData


def build(
    recorder: Recorder,
    model: nn.Module,
    error: BaseException | None,
    provenance: InputProvenance,
    *,
    keep_values: bool,
) -> TraceData:
    """The trace of what a recorder saw. Linear in the number of events."""
    events = recorder.events
    calls = recorder.modules.call_records()
    layers, layer_of, pass_of = _layers(events, [call.module for call in calls])
    modules = recorder.modules.module_records()
    data = TraceData(
        model_class=type(model).__name__,
        training=model.training,
        nodes=_columns(recorder, layers, layer_of, pass_of),
        layers=layers,
        modules=modules,
        calls=calls,
        params=recorder.modules.param_records(),
        buffers=recorder.modules.buffer_records(),
        branches=[_branch(recorder, test) for test in recorder.tests],
        provenance=provenance,
        environment=_environment(),
        outcome=Outcome(error is None, "" if error is None else f"{type(error).__name__}: {error}", keep_values),
    )
    _index_state(data)
    return data


def _layers(events: list[Event], module_of: list[int]) -> tuple[list[LayerRecord], list[int], list[int]]:
    """Group events into layers and number their passes.

    Same function, same parameter tensors, same module: one layer. Any other op is a layer of its own.
    """
    namer, layers, members = Namer(), [], []
    by_class: dict[tuple[object, ...], int] = {}
    layer_of, pass_of = [0] * len(events), [1] * len(events)
    for node, event in enumerate(events):
        kind, info, params = event[0], event[1], event[9]
        found = None
        if kind == OP and params:
            key = (info.name, params, module_of[event[7]])  # type: ignore[attr-defined]
            found = by_class.setdefault(key, len(layers))
        if found is None or found == len(layers):
            found = len(layers)
            name = op_type(info.name) if kind == OP else KIND_NAMES[kind]  # type: ignore[attr-defined]
            label, n, step = namer.next(name, stepped=kind == OP)
            layers.append(LayerRecord(label, name, n, step, ()))
            members.append([])
        layer_of[node] = found
        members[found].append(node)
        pass_of[node] = len(members[found])
    for layer, nodes in zip(layers, members, strict=True):
        layer.nodes = tuple(nodes)
    return layers, layer_of, pass_of


def _columns(recorder: Recorder, layers: list[LayerRecord], layer_of: list[int], pass_of: list[int]) -> NodeTable:
    events = recorder.events
    count = len(events)

    def bound(node: int) -> dict[str, object]:
        info, args, kwargs = events[node][1], events[node][3], events[node][4]
        return schemas.bind(info.func, info.name, args, kwargs or {})  # type: ignore[attr-defined]

    def is_call(node: int) -> bool:
        return events[node][0] == OP and events[node][1] is not IDENTITY

    def config(node: int) -> tuple[tuple[str, object], ...]:
        return arguments.shown(_name(events[node]), bound(node), events[node][5]) if is_call(node) else ()  # type: ignore[arg-type]

    def forward_flops(node: int) -> int | None:
        if not is_call(node):
            return 0
        return flops.forward_flops(_name(events[node]), bound(node), events[node][5])  # type: ignore[arg-type]

    def forward_macs(node: int) -> int | None:
        return flops.forward_macs(_name(events[node]), bound(node), events[node][5]) if is_call(node) else None  # type: ignore[arg-type]

    return NodeTable(
        label=[pass_label(layers[k].label, p, layers[k].num_passes) for k, p in zip(layer_of, pass_of, strict=True)],
        layer=layer_of,
        pass_number=pass_of,
        kind=[KIND_NAMES[event[0]] for event in events],
        func=[_name(event) for event in events],
        path=[event[13] for event in events],
        parents=[tuple(ArgRef(*parent) for parent in event[2]) for event in events],
        outs=[event[5] for event in events],  # type: ignore[misc]
        call=[event[7] for event in events],
        params=[event[9] for event in events],
        buffers=[event[10] for event in events],
        inplace=[event[11] for event in events],
        synthetic=[event[1] is IDENTITY for event in events],
        value=[event[12] for event in events],
        time_s=[None if event[6] is None else event[6] * 1e-9 for event in events],
        config=Deferred(count, config),
        flops=Deferred(count, forward_flops),
        macs=Deferred(count, forward_macs),
        site=Deferred(count, lambda node: _site(recorder, node)),
        composite=_composites(recorder, count),
    )


def _site(recorder: Recorder, node: int) -> CallSite | None:
    """The user's line behind a call: on its own frames, else on those around the module calls it ran in."""
    event, modules = recorder.events[node], recorder.modules
    found = callsite.decode(event[8])
    call: int | None = event[7]
    while found is None and call is not None and event[0] == OP:
        found = callsite.decode(modules.call_sites[call])
        call = modules.parent_call(call)
    return found


def _name(event: Event) -> str:
    """Bare function name of an op; the kind's name for everything else."""
    return event[1].name if event[0] == OP else KIND_NAMES[event[0]]  # type: ignore[attr-defined]


def _composites(recorder: Recorder, count: int) -> list[str]:
    """Outermost opened function around each event; inner ranges close first, so later ones win."""
    names = [""] * count
    for first, last, name in recorder.composites:
        names[first:last] = [name] * (last - first)
    return names


def _branch(recorder: Recorder, test: tuple[int, bool, tuple[object, ...]]) -> BranchTest:
    node, value, site = test
    place = callsite.decode(site) or _site(recorder, node)
    return BranchTest(node, "bool", value, place.file if place else "", place.line if place else 0)


def _index_state(data: TraceData) -> None:
    """Which nodes read each parameter, and which nodes are the versions of each buffer."""
    users: list[list[int]] = [[] for _ in data.params]
    versions: list[list[int]] = [[] for _ in data.buffers]
    for node, params in enumerate(data.nodes.params):
        for param in params:
            users[param].append(node)
    for node, kind in enumerate(data.nodes.kind):
        if kind == "buffer":
            versions[data.nodes.buffers[node][0]].append(node)
    for param, nodes in zip(data.params, users, strict=True):
        param.used_by = tuple(nodes)
    for buffer, nodes in zip(data.buffers, versions, strict=True):
        buffer.versions = tuple(nodes)


def _environment() -> Environment:
    try:
        own = version("torchlens")
    except PackageNotFoundError:  # run from a checkout that is not installed
        own = ""
    return Environment(torch.__version__, own, platform.python_version(), platform.platform(), torch.get_num_threads())



