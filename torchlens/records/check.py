"""Structural rules that every trace keeps, checked in one linear pass."""

from __future__ import annotations

from collections.abc import Iterator

from torchlens.base.errors import fail
from torchlens.records.labels import Namer, pass_label
from torchlens.records.ops import KINDS
from torchlens.records.trace_data import TraceData


def check(data: TraceData) -> None:
    """Raise CaptureError[trace_inconsistent] naming the first broken rule; return None if all hold."""
    for rule in (_columns, _numbers, _order, _arrows, _layers, _labels, _modules, _calls, _spans, _state, _branches):
        problem = next(rule(data), "")
        if problem:
            fail("trace_inconsistent", problem)


def _columns(data: TraceData) -> Iterator[str]:
    count = len(data.nodes)
    for name in type(data.nodes).__slots__:
        if len(getattr(data.nodes, name)) != count:
            yield f"column {name} has {len(getattr(data.nodes, name))} rows, not {count}"
    if len(set(data.nodes.label)) != count:
        yield "two nodes bear one label"


def _numbers(data: TraceData) -> Iterator[str]:
    """Every index is that of the row it names, and names one."""
    for name in ("modules", "calls", "params", "buffers"):
        for index, row in enumerate(getattr(data, name)):
            if row.index != index:
                yield f"entry {index} of the {name} says that it is entry {row.index}"
    t = data.nodes
    limits = {"layer": len(data.layers), "call": len(data.calls)}
    for name, limit in limits.items():
        for label, index in zip(t.label, getattr(t, name), strict=True):
            if not 0 <= index < limit:
                yield f"{label} is in {name} {index}, which does not exist"
    for name, limit in (("params", len(data.params)), ("buffers", len(data.buffers))):
        for label, indexes in zip(t.label, getattr(t, name), strict=True):
            if any(not 0 <= index < limit for index in indexes):
                yield f"{label} reads one of the {name} that does not exist"
            if len(set(indexes)) != len(indexes):
                yield f"{label} names one of the {name} twice"


def _order(data: TraceData) -> Iterator[str]:
    """Inputs come first, outputs last; an output shows what something made."""
    t = data.nodes
    last = ""
    for i, kind in enumerate(t.kind):
        if kind not in KINDS:
            yield f"{t.label[i]} has the unknown kind {kind}"
        if kind == "input" and last not in ("", "input"):
            yield f"input {t.label[i]} comes after other nodes"
        if last == "output" and kind != "output":
            yield f"{t.label[i]} comes after an output"
        if kind in ("input", "constant") and t.parents[i]:
            yield f"{t.label[i]} is one of the {kind}s and has parents"
        if kind == "output" and not t.parents[i] and not t.params[i]:
            yield f"{t.label[i]} shows nothing"
        if kind == "buffer" and len(t.buffers[i]) != 1:
            yield f"{t.label[i]} is a version of {len(t.buffers[i])} buffers"
        if kind != "op" and t.synthetic[i]:
            yield f"{t.label[i]} is synthetic and no op"
        last = kind


def _arrows(data: TraceData) -> Iterator[str]:
    """Arrows lead forward from outputs that exist, one to each place of an argument."""
    t = data.nodes
    for i, refs in enumerate(t.parents):
        places: set[object] = set()
        for ref in refs:
            if not 0 <= ref.node < i:
                yield f"{t.label[i]} reads a node that does not come before it"
            elif not ref.late and not 0 <= ref.output < len(t.outs[ref.node]):
                yield f"{t.label[i]} reads output {ref.output} of {t.label[ref.node]}, which it does not have"
            elif t.kind[ref.node] == "output":
                yield f"{t.label[i]} reads {t.label[ref.node]}, which is an output of the model"
            place = (ref.position, ref.node) if ref.late else ref.position
            if place in places:
                yield f"two arrows lead to one place of {t.label[i]}"
            places.add(place)


def _layers(data: TraceData) -> Iterator[str]:
    seen, first = 0, -1
    for index, layer in enumerate(data.layers):
        seen += len(layer.nodes)
        if not layer.nodes or list(layer.nodes) != sorted(layer.nodes):
            yield f"the passes of {layer.label} are not in order"
        for number, node in enumerate(layer.nodes, start=1):
            if not 0 <= node < len(data.nodes):
                yield f"{layer.label} holds a node that does not exist"
            elif data.nodes.layer[node] != index or data.nodes.pass_number[node] != number:
                yield f"{layer.label} and its node {data.nodes.label[node]} disagree"
        if layer.nodes and layer.nodes[0] <= first:
            yield f"{layer.label} comes after a layer that ran later"
        first = layer.nodes[0] if layer.nodes else first
    if seen != len(data.nodes):
        yield "the layers do not hold every node once"


def _labels(data: TraceData) -> Iterator[str]:
    """Labels follow from types and order."""
    namer = Namer()
    for layer in data.layers:
        stepped = data.nodes.kind[layer.nodes[0]] == "op"
        if (layer.label, layer.n, layer.step) != namer.next(layer.type, stepped=stepped):
            yield f"{layer.label} is not layer {layer.n} of its type at step {layer.step}"
        for number, node in enumerate(layer.nodes, start=1):
            if data.nodes.label[node] != pass_label(layer.label, number, layer.num_passes):
                yield f"{data.nodes.label[node]} is not pass {number} of {layer.num_passes} of {layer.label}"


def _modules(data: TraceData) -> Iterator[str]:
    """The modules are a tree with one root, addresses are unique, calls are numbered in order."""
    addresses: set[str] = set()
    for module in data.modules:
        for address in (module.address, *module.aliases):
            if address in addresses:
                yield f"two modules have the address {address!r}"
            addresses.add(address)
        if (module.parent is None) != (module.index == 0):
            yield f"module {module.address!r} has no place in the tree"
        elif module.parent is not None and module.index not in data.modules[module.parent].children:
            yield f"module {module.address!r} is no child of its parent"
        if any(data.modules[child].parent != module.index for child in module.children):
            yield f"a child of module {module.address!r} has another parent"
        numbers = [data.calls[call].number for call in module.calls]
        if numbers != list(range(1, len(numbers) + 1)) or list(module.calls) != sorted(module.calls):
            yield f"the calls of module {module.address!r} are numbered {numbers}"
        if any(data.calls[call].module != module.index for call in module.calls):
            yield f"module {module.address!r} has a call of another one"
    if sum(len(module.calls) for module in data.modules) != len(data.calls):
        yield "the modules do not hold every call once"


def _calls(data: TraceData) -> Iterator[str]:
    """Every op is in one call, the one that it names; what a call returns exists."""
    owned: set[int] = set()
    for call in data.calls:
        key = data.call_key(call.index)
        if (call.parent is None) != (call.index == 0):
            yield f"call {key} is not in another one"
        if call.parent is not None and not 0 <= call.parent < call.index:
            yield f"call {key} begins before the call around it"
        if list(call.ops) != sorted(set(call.ops)):
            yield f"the ops of call {key} are not in order"
        for node in call.ops:
            if not 0 <= node < len(data.nodes) or data.nodes.call[node] != call.index or data.nodes.kind[node] != "op":
                yield f"node {node} is no op of call {key}"
        owned.update(call.ops)
        for node, output in call.outputs:
            if not (0 <= node < len(data.nodes) and 0 <= output < len(data.nodes.outs[node])):
                yield f"call {key} returns an output that does not exist"
    for node in data.op_indexes:
        if node not in owned:
            yield f"{data.nodes.label[node]} belongs to no module call"


def _spans(data: TraceData) -> Iterator[str]:
    """Calls lie within the call around them, one after the other, and hold their nodes."""
    end_of_last: dict[int, int] = {}
    for call in data.calls:
        first, last = call.span
        if not 0 <= first <= last <= len(data.nodes):
            yield f"call {data.call_key(call.index)} spans nodes {first} to {last}"
        if call.parent is not None:
            start, end = data.calls[call.parent].span
            if first < end_of_last.get(call.parent, start) or last > end:
                yield f"call {data.call_key(call.index)} is not nested in the call around it"
            end_of_last[call.parent] = last
    for node, call in enumerate(data.nodes.call):
        first, last = data.calls[call].span
        if data.nodes.kind[node] == "op" and not first <= node < last:
            yield f"{data.nodes.label[node]} is outside the span of its call"


def _state(data: TraceData) -> Iterator[str]:
    """Parameters know their readers, buffers their versions, and the other way round."""
    readers: list[list[int]] = [[] for _ in data.params]
    versions: list[list[int]] = [[] for _ in data.buffers]
    for node, kind in enumerate(data.nodes.kind):
        for param in data.nodes.params[node]:
            readers[param].append(node)
        if kind == "buffer":
            versions[data.nodes.buffers[node][0]].append(node)
    for record, nodes in zip(data.params, readers, strict=True):
        if list(record.used_by) != nodes:
            yield f"{record.address} and the nodes disagree about its use"
    for record, nodes in zip(data.buffers, versions, strict=True):
        if list(record.versions) != nodes:
            yield f"{record.address} and the nodes disagree about its versions"
    names = [name for record in (*data.params, *data.buffers) for name in (record.address, *record.aliases)]
    if len(set(names)) != len(names):
        yield "two parameters or buffers have one address"


def _branches(data: TraceData) -> Iterator[str]:
    """Tests and reads name nodes; an arrow into an arm is an arrow, and a test decided it."""
    count = len(data.nodes)
    nodes = [*data.branches.nodes, *data.branches.reads]
    if any(not 0 <= node < count for node in nodes):
        yield "a branch tests a node that does not exist"
    for arm in data.branches.arms:
        if not 0 <= arm.test < len(data.branches):
            yield "an arrow into an arm names a test that does not exist"
        elif not 0 <= arm.target < count or arm.source not in {ref.node for ref in data.nodes.parents[arm.target]}:
            yield f"an arm is entered from node {arm.source} to node {arm.target}, where no arrow is"
