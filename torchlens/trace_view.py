"""`Trace`: a thin face over `TraceData` - lookup, views of single records, and one-line delegates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from torchlens.base.errors import error, fail, nearest
from torchlens.records.check import check
from torchlens.records.export import to_dict
from torchlens.records.labels import split_pass
from torchlens.records.ops import CallSite, Cost, LayerRecord, OpRecord
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.records.state import BufferRecord, ParamRecord
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import TraceData

if TYPE_CHECKING:
    import networkx

    from torchlens.capture.session import Recording
    from torchlens.drawings import Drawing

T = TypeVar("T")


class View(Sequence[T], Generic[T]):
    """A sequence of records, indexed by position or by name, whose items are made on access."""

    def __init__(self, indexes: Sequence[int], make: Callable[[int], T], find: Callable[[str], int]) -> None:
        self._indexes, self._make, self._find = indexes, make, find

    def __len__(self) -> int:
        return len(self._indexes)

    def __iter__(self) -> Iterator[T]:
        return (self._make(i) for i in self._indexes)

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, slice):
            return [self._make(i) for i in self._indexes[key]]
        return self._make(self._find(key) if isinstance(key, str) else self._indexes[key])

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return any(item == key for item in self)
        try:
            self._find(key)
        except KeyError:
            return False
        return True


class Op:
    """One executed call: a node of the trace.

    Times in seconds, sizes in bytes, FLOPs with a multiply-add as 2; None = not measured or not known.
    """

    __slots__ = ("_trace", "record")

    def __init__(self, trace: Trace, index: int) -> None:
        self._trace = trace
        self.record: OpRecord = trace.data.record(index)

    def __repr__(self) -> str:
        return f"Op({self.record.label!r}, shape={self.shape}, parents={list(self.parents)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and self.record is other.record

    def __hash__(self) -> int:
        return id(self.record)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "record"), name)

    @property
    def out(self) -> Any:
        """The recorded output: the tensor, or the call's structure when it has several outputs."""
        return self._trace.value(self.record.index)

    @property
    def _spec(self) -> TensorSpec | None:
        return self.record.outs[0] if self.record.outs else None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the first output."""
        return self._spec.shape if self._spec else None

    @property
    def dtype(self) -> str | None:
        """Dtype of the first output, without `torch.`."""
        return self._spec.dtype if self._spec else None

    @property
    def device(self) -> str | None:
        """Device of the first output."""
        return self._spec.device if self._spec else None

    @property
    def parents(self) -> tuple[str, ...]:
        """Labels of the nodes that this one read, each once, in argument order."""
        labels = self._trace.data.nodes.label
        return tuple(dict.fromkeys(labels[ref.node] for ref in self.record.inputs))

    @property
    def children(self) -> tuple[str, ...]:
        """Labels of the nodes that read this one."""
        data = self._trace.data
        return tuple(data.nodes.label[i] for i in data.children[self.record.index])

    @property
    def modules(self) -> tuple[str, ...]:
        """Keys of the module calls around the op, outermost first."""
        return self.record.module_stack

    @property
    def cost(self) -> Cost:
        """Measured and counted cost of the call."""
        return self.record.cost

    @property
    def func_duration(self) -> float | None:
        """Wall clock of the call alone, seconds."""
        return self.record.cost.func_duration

    @property
    def flops_forward(self) -> int | None:
        """Forward FLOPs."""
        return self.record.cost.flops_forward

    @property
    def macs_forward(self) -> int | None:
        """Forward multiply-accumulates, for matmul, convolution and attention only."""
        return self.record.cost.macs_forward

    @property
    def activation_memory(self) -> int | None:
        """Bytes of the outputs."""
        return self.record.cost.activation_memory

    @property
    def call_site(self) -> CallSite | None:
        """File, line and function of the user's call."""
        return self.record.call_site

    @property
    def has_input_ancestor(self) -> bool:
        """Whether the op was computed from an input."""
        return self._trace.data.from_input[self.record.index]


class Layer:
    """All passes of one op site. A field that differs between its passes is refused: name one pass."""

    __slots__ = ("_trace", "record")

    def __init__(self, trace: Trace, index: int) -> None:
        self._trace = trace
        self.record: LayerRecord = trace.data.layers[index]

    def __repr__(self) -> str:
        return f"Layer({self.record.label!r}, passes={self.num_passes})"

    @property
    def label(self) -> str:
        """Name without a pass."""
        return self.record.label

    @property
    def num_passes(self) -> int:
        """How often it ran."""
        return self.record.num_passes

    @property
    def ops(self) -> tuple[Op, ...]:
        """Its passes in order."""
        return tuple(Op(self._trace, i) for i in self.record.nodes)

    @property
    def total_func_duration(self) -> float | None:
        """Seconds over all passes, None if one is not measured."""
        return _total([op.func_duration for op in self.ops])

    @property
    def total_activation_memory(self) -> int | None:
        """Bytes over all passes."""
        return _total([op.activation_memory for op in self.ops])

    @property
    def total_flops_forward(self) -> int | None:
        """FLOPs over all passes, None if one is unknown."""
        return _total([op.flops_forward for op in self.ops])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = [getattr(op, name) for op in self.ops]
        if any(value is not values[0] and value != values[0] for value in values[1:]):
            what = f"{name} differs between the {len(values)} passes of {self.label}"
            fail("layer_pass_ambiguous", what, fix=f'read trace["{self.label}:1"].{name}')
        return values[0]


class Module:
    """One module of the model and what its calls did."""

    __slots__ = ("_trace", "record")

    def __init__(self, trace: Trace, index: int) -> None:
        self._trace = trace
        self.record = trace.data.modules[index]

    def __repr__(self) -> str:
        return f"Module({self.address!r}, {self.class_name}, calls={self.num_calls})"

    @property
    def address(self) -> str:
        """First dotted path, "" for the model itself."""
        return self.record.address

    @property
    def class_name(self) -> str:
        """Name of its class."""
        return self.record.class_name

    @property
    def num_calls(self) -> int:
        """How often it ran, 0 if never."""
        return len(self.record.calls)

    @property
    def calls(self) -> tuple[str, ...]:
        """Keys of its calls, `features.0:1`."""
        return tuple(self._trace.data.call_key(c) for c in self.record.calls)

    @property
    def children(self) -> tuple[str, ...]:
        """Addresses of the modules directly below."""
        return tuple(self._trace.data.modules[i].address for i in self.record.children)

    @property
    def ops(self) -> tuple[str, ...]:
        """Labels of the ops recorded while it ran, inner modules included, in order."""
        data = self._trace.data
        spans = [data.calls[c].span for c in self.record.calls]
        return tuple(data.nodes.label[i] for a, b in spans for i in range(a, b) if data.nodes.kind[i] == "op")

    @property
    def num_params(self) -> int:
        """Elements of the parameters it owns itself or holds below."""
        data, prefix = self._trace.data, f"{self.address}." if self.address else ""
        names = [(p, (p.address, *p.aliases)) for p in data.params]
        return sum(p.numel for p, addresses in names if any(a.startswith(prefix) for a in addresses))


class Trace:
    """One recorded forward pass: read it, export it, draw it.

    data: everything recorded, as plain columns; result: what the forward returned (None when only metadata was kept).
    """

    def __init__(self, recording: Recording) -> None:
        self.data: TraceData = recording.data
        self.result = recording.result
        self._payloads = recording.payloads

    def __repr__(self) -> str:
        totals = self.data.totals
        return f"Trace({self.data.model_class}, {totals['ops']} ops, {totals['params']} params)"

    def __len__(self) -> int:
        return len(self.data.op_indexes)

    # -- records
    @property
    def ops(self) -> View[Op]:
        """Ops in execution order, by position or label."""
        return View(self.data.op_indexes, lambda i: Op(self, i), self._node_index)

    @property
    def nodes(self) -> View[Op]:
        """All nodes: inputs, ops, constants, buffer versions, outputs."""
        return View(range(len(self.data.nodes)), lambda i: Op(self, i), self._node_index)

    @property
    def layers(self) -> View[Layer]:
        """Layers in order of first execution."""
        return View(range(len(self.data.layers)), lambda i: Layer(self, i), self._layer_index)

    @property
    def modules(self) -> View[Module]:
        """All modules in `named_modules` order, by position or address."""
        return View(range(len(self.data.modules)), lambda i: Module(self, i), self._module_index)

    @property
    def params(self) -> tuple[ParamRecord, ...]:
        """All parameters."""
        return tuple(self.data.params)

    @property
    def buffers(self) -> tuple[BufferRecord, ...]:
        """All registered buffers."""
        return tuple(self.data.buffers)

    @property
    def branches(self) -> tuple[Any, ...]:
        """Tensors that Python turned into a bool, in order."""
        return tuple(self.data.branches)

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.data.outcome

    @property
    def provenance(self) -> InputProvenance:
        """Where the input came from."""
        return self.data.provenance

    @property
    def annotations(self) -> dict[str, object]:
        """Notes attached to the trace."""
        return self.data.annotations

    # -- lookup
    def __getitem__(self, name: str) -> Op | Layer | Module:
        """By label with pass, layer label, buffer version or module address, in this order.

        A bare label of a layer with several passes gives the Layer.
        """
        index = self._op_named(name)
        if index is not None:
            return Op(self, index)
        layer = self.data.layer_of.get(name)
        if layer is not None:
            return Layer(self, layer)
        address = name.removeprefix("@")
        version = self._buffer_version(address)
        if version is not None:
            return Op(self, version)
        module = self.data.module_of.get("" if address == "self" else address)
        if module is not None:
            return Module(self, module)
        known = [*self.data.nodes.label, *self.data.layer_of, *self.data.module_of]
        close = nearest(name, known)
        raise error("label_not_found", f"nothing in the trace is called {name!r}", allowed=close, got=name)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def _op_named(self, name: str) -> int | None:
        if name in self.data.index_of:
            return self.data.index_of[name]
        head, number = split_pass(name)
        layer = self.data.layer_of.get(head) if number is not None else None
        if layer is None or number is None:
            return None
        nodes = self.data.layers[layer].nodes
        return nodes[number - 1] if 1 <= number <= len(nodes) else None

    def _buffer_version(self, name: str) -> int | None:
        head, number = split_pass(name)
        for buffer in self.data.buffers:
            if head in (buffer.address, *buffer.aliases) and buffer.versions:
                position = (number or 1) - 1
                return buffer.versions[position] if position < len(buffer.versions) else None
        return None

    def _node_index(self, name: str) -> int:
        index = self._op_named(name)
        if index is None:
            raise error(
                "label_not_found", f"no node is called {name!r}", allowed=nearest(name, self.data.nodes.label), got=name
            )
        return index

    def _layer_index(self, name: str) -> int:
        if name not in self.data.layer_of:
            raise error("label_not_found", f"no layer is called {name!r}", allowed=nearest(name, self.data.layer_of))
        return self.data.layer_of[name]

    def _module_index(self, name: str) -> int:
        address = "" if name == "self" else name.removeprefix("@")
        if address not in self.data.module_of:
            close = nearest(address, self.data.module_of)
            raise error("label_not_found", f"no module has the address {name!r}", allowed=close, got=name)
        return self.data.module_of[address]

    def value(self, index: int) -> Any:
        """The kept output of a node, by its index. Refused if it was not kept or was overwritten."""
        label = self.data.nodes.label[index]
        if self._payloads is None:
            fail("payload_unavailable", f"the value of {label} was not kept: only metadata was recorded", label=label)
        return self._payloads.value(index, label)

    # -- export
    def check(self) -> None:
        """Verify every structural rule of the trace; raises CaptureError[trace_inconsistent]."""
        check(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able facts, schema `torchlens_trace_v1`."""
        return to_dict(self.data)

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict()` as JSON; the file appears whole or not at all."""
        from torchlens.drawings import write_atomically

        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        write_atomically(Path(path), text.encode() + b"\n")
        return Path(path)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A `networkx.MultiDiGraph` with the same attributes; one edge per tensor read."""
        import networkx

        facts = self.to_dict()
        graph = networkx.MultiDiGraph(schema=facts["schema"], **facts["model"], totals=facts["totals"])
        for node in facts["nodes"]:
            graph.add_node(node["label"], **{key: value for key, value in node.items() if key not in ("label", "parents")})
        for node in facts["nodes"]:
            for label, output in node["parents"]:
                graph.add_edge(label, node["label"], output=output)
        return graph

    # -- drawing
    def draw(self, path: str | Path | None = None, **options: Any) -> Drawing:
        """Draw the trace; with a path, write it (PDF unless the extension or file_format= says otherwise).

        Options: see `torchlens.settings.options`. Without a path nothing is written; a notebook shows the result.
        """
        from torchlens.drawings import draw_trace

        return draw_trace(self.data, path, options)


def _total(values: list[Any]) -> Any:
    return None if any(value is None for value in values) else sum(values)


