"""From events to `TraceData`: node order, layers and passes, labels, and the columns worked out on demand."""

from __future__ import annotations

import platform
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version

import torch
from torch import nn

from torchlens.analysis import branches, schemas
from torchlens.analysis.passes import layer_classes
from torchlens.capture import callsite
from torchlens.capture.dispatch import Recorder
from torchlens.capture.event_log import IDENTITY
from torchlens.capture.events import OP, Event
from torchlens.ops import arguments, flops
from torchlens.records.flow import Branches
from torchlens.records.labels import Namer, op_type, pass_label
from torchlens.records.modules import ModuleCall
from torchlens.records.ops import ArgRef, CallSite, LayerRecord, summarize_shapes
from torchlens.records.provenance import Environment, InputProvenance, Outcome
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import Deferred, NodeTable, TraceData


def build(recorder: Recorder, model: nn.Module, outcome: Outcome, provenance: InputProvenance) -> TraceData:
    """The trace of what a recorder saw. Linear in the number of events."""
    events = recorder.log.events
    calls = recorder.log.modules.call_records((i, event.call) for i, event in enumerate(events) if event.kind == OP)
    layers, layer_of, pass_of = _layers(recorder, calls)
    modules = recorder.log.modules.module_records()
    data = TraceData(
        model_class=type(model).__name__,
        training=bool(getattr(model, "training", False)),
        nodes=_columns(recorder, layers, layer_of, pass_of),
        layers=layers,
        modules=modules,
        calls=calls,
        params=recorder.log.modules.param_records(recorder.log.tensors.spec_of),
        buffers=recorder.log.modules.buffer_records(recorder.log.tensors.spec_of),
        branches=_branches(recorder),
        provenance=provenance,
        environment=_environment(),
        outcome=outcome,
    )
    _index_state(data)
    return data


def _layers(recorder: Recorder, calls: list[ModuleCall]) -> tuple[list[LayerRecord], list[int], list[int]]:
    """Layers in order of first execution, and per event its layer and pass number."""
    events = recorder.log.events
    classes = layer_classes(events, calls, recorder.log.modules.call_sites)
    namer = Namer()
    layers: list[LayerRecord] = []
    members: list[list[int]] = []
    known: dict[int, int] = {}
    pass_of = [1] * len(events)
    layer_of = [known.setdefault(found, len(known)) for found in classes]
    for node, layer in enumerate(layer_of):
        if layer < len(layers):
            nodes = members[layer]
            nodes.append(node)
            pass_of[node] = len(nodes)
            continue
        event = events[node]
        name = op_type(_name(event))
        label, n, step = namer.next(name, stepped=event.info is not None)
        layers.append(LayerRecord(label, name, n, step, ()))
        members.append([node])
    for layer, nodes in zip(layers, members, strict=True):
        layer.nodes = tuple(nodes)
        if len(nodes) > 1:
            layer.shape_summary = summarize_shapes([[spec.shape for spec in events[node].outs] for node in nodes])
    return layers, layer_of, pass_of


def _columns(recorder: Recorder, layers: list[LayerRecord], layer_of: list[int], pass_of: list[int]) -> NodeTable:
    events, sites = recorder.log.events, _Sites(recorder)
    count = len(events)

    def facts(node: int) -> tuple[str, dict[str, object], tuple[TensorSpec, ...]] | None:
        """Name, bound arguments and outputs of a call; None for anything that called no function."""
        event = events[node]
        if event.info is None or event.info is IDENTITY:
            return None
        return (
            event.info.name,
            schemas.bind(event.info.func, event.info.name, event.args, event.kwargs or {}),
            event.outs,
        )

    def config(node: int) -> tuple[tuple[str, object], ...]:
        call = facts(node)
        info = events[node].info
        return arguments.shown(*call, schemas.defaults(info.func, info.name)) if call and info else ()

    def forward_flops(node: int) -> int | None:
        call = facts(node)
        return flops.forward_flops(*call) if call else 0

    def forward_macs(node: int) -> int | None:
        call = facts(node)
        return flops.forward_macs(*call) if call else None

    def backward_flops(node: int) -> int | None:
        call, forward = facts(node), forward_flops(node)
        factor = flops.backward_factor(call[0]) if call else 0
        return None if forward is None or factor is None else round(forward * factor)

    return NodeTable(
        label=[pass_label(layers[k].label, p, layers[k].num_passes) for k, p in zip(layer_of, pass_of, strict=True)],
        layer=layer_of,
        pass_number=pass_of,
        kind=[event.kind for event in events],
        func=[_name(event) for event in events],
        path=[event.path for event in events],
        parents=[tuple(map(ArgRef._make, event.parents)) for event in events],
        outs=[event.outs for event in events],
        call=[event.call for event in events],
        params=[event.params for event in events],
        buffers=[event.buffers for event in events],
        inplace=[event.inplace for event in events],
        synthetic=[event.info is IDENTITY for event in events],
        value=[event.value for event in events],
        time_s=[None if event.nanoseconds is None else event.nanoseconds * 1e-9 for event in events],
        config=Deferred(count, config),
        flops=Deferred(count, forward_flops),
        macs=Deferred(count, forward_macs),
        flops_backward=Deferred(count, backward_flops),
        site=Deferred(count, sites.of),
        composite=_composites(recorder, count),
    )


class _Sites:
    """The user's line behind each call. Holds the recorded frames only, so that a trace does not keep its model."""

    def __init__(self, recorder: Recorder) -> None:
        self._events = recorder.log.events
        self._calls, self._parents = recorder.log.modules.call_sites, recorder.log.modules.call_parents

    def of(self, node: int) -> CallSite | None:
        """From the call's own frames, else from those around the module calls it ran in; None for other kinds."""
        event = self._events[node]
        if event.info is None:
            return None
        found = callsite.decode(event.site)
        call: int | None = event.call
        while found is None and call is not None:
            found = callsite.decode(self._calls[call])
            call = self._parents[call]
        return found


def _name(event: Event) -> str:
    """Bare function name of an op; the kind's name for everything else."""
    return event.kind if event.info is None else event.info.name


def _composites(recorder: Recorder, count: int) -> list[str]:
    """Outermost opened function around each event; inner ranges close first, so later ones win."""
    names = [""] * count
    for first, last, name in recorder.composites:
        names[first:last] = [name] * (last - first)
    return names


def _branches(recorder: Recorder) -> Branches:
    """What the tests were is read from the sources when somebody asks; holds recorded frames, not the model."""
    modules = recorder.log.modules
    work_out = partial(branches.work_out, recorder.tests, recorder.log.events, modules.call_sites, modules.call_parents)
    nodes = [test.node for test in recorder.tests]
    return Branches.deferred(nodes, [node for nodes in recorder.reads.values() for node in nodes], work_out)


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
    return Environment(torch.__version__, *_versions(), torch.get_num_threads())


@cache
def _versions() -> tuple[str, str, str]:
    """Of this package, of Python, and of the platform, which asks a process of its own."""
    try:
        own = version("torchlens")
    except PackageNotFoundError:  # run from a checkout that is not installed
        own = ""
    return own, platform.python_version(), platform.platform()
