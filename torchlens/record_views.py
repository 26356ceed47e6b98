"""Thin views of single records: what `trace.ops`, `trace.layers`, `trace.modules` and `trace[...]` give out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from torchlens.base.errors import fail, nearest
from torchlens.branch_views import Branch
from torchlens.records.nonfinite import held_in_outputs, joined
from torchlens.records.notes import note_of
from torchlens.records.ops import CallSite, Cost, LayerRecord, OpRecord
from torchlens.records.payloads import OutStats
from torchlens.records.tensors import TensorSpec

if TYPE_CHECKING:
    from torchlens.trace_view import Trace

T = TypeVar("T")


class View(Sequence[T], Generic[T]):
    """A sequence of records, indexed by position or by name, whose items are made on access."""

    def __init__(self, indexes: Sequence[int], make: Callable[[int], T], find: Callable[[str], int]) -> None:
        self._indexes, self._make, self._find = indexes, make, find

    def __repr__(self) -> str:
        shown = ", ".join(repr(self._make(i)) for i in self._indexes[:3])
        return f"[{shown}{', ...' if len(self) > 3 else ''}] ({len(self)} in all)"

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
        record = object.__getattribute__(self, "record")
        if name.startswith("_") or hasattr(record, name):
            return getattr(record, name)
        close = nearest(name, dir(self), 1)
        hint = f"; perhaps you meant {close[0]!r}" if close else ""
        raise AttributeError(f"an op has no {name!r}{hint}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        fields = [name for name in OpRecord.__slots__ if name not in ("cost", "stats")]
        return sorted({*fields, *(name for name in dir(type(self)) if not name.startswith("_"))})

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
    def device_time(self) -> int | None:
        """Nanoseconds of the kernels it launched; None if it launched none, or without `torchlens.report`."""
        return self.record.cost.device_time

    @property
    def num_autograd_tensors(self) -> int | None:
        """Tensors that autograd kept for the op's backward, each storage once; None if not measured."""
        return self.record.cost.num_autograd_tensors

    @property
    def autograd_memory(self) -> int | None:
        """Bytes of the storages that autograd kept for the op's backward; None if not measured."""
        return self.record.cost.autograd_memory

    @property
    def stats(self) -> OutStats | tuple[OutStats | None, ...] | None:
        """Statistics of the output, or one per output in order where it has several.

        Taken in passing if `out_stats` asked for it, else worked out from the kept value; None where neither can tell.
        """
        rows = self._trace.stats_of(self.record.index)
        return rows[0] if rows is not None and len(rows) == 1 else rows

    @property
    def nonfinite(self) -> str:
        """What all its outputs hold: "finite", "nan", "posinf", "neginf", "mixed" (several of them), or "unchecked".

        From `stats`. An output of whole numbers or bools is finite.
        """
        made = self.record
        return joined(held_in_outputs(made.kind, made.func_name, made.outs, self._trace.stats_of(made.index))).state

    @property
    def annotations(self) -> Mapping[str, object]:
        """What `trace.annotate` attached to it, by name; data without names is under ""."""
        return note_of(self._trace.data, self.record.index).data

    @property
    def call_site(self) -> CallSite | None:
        """File, line and function of the user's call."""
        return self.record.call_site

    @property
    def is_input(self) -> bool:
        """Whether the node is an input of the model."""
        return self.record.kind == "input"

    @property
    def is_output(self) -> bool:
        """Whether the node is an output of the model."""
        return self.record.kind == "output"

    @property
    def is_buffer(self) -> bool:
        """Whether the node is a version of a buffer."""
        return self.record.kind == "buffer"

    @property
    def func_config(self) -> dict[str, Any]:
        """Arguments worth showing, by name."""
        return dict(self.record.config)

    @property
    def bool_value(self) -> bool | None:
        """The value of a boolean scalar output."""
        return self.record.value if isinstance(self.record.value, bool) else None

    @property
    def parent_arg_positions(self) -> tuple[tuple[str, tuple[int | str, ...]], ...]:
        """(label, position) of every tensor read; `(0,)`, `(0, 1)` in a list, `("weight",)` a keyword."""
        labels = self._trace.data.nodes.label
        return tuple((labels[ref.node], ref.position) for ref in self.record.inputs)

    @property
    def flops_backward(self) -> int | None:
        """FLOPs of its gradients, estimated from the forward count."""
        return self.record.cost.flops_backward

    @property
    def branch(self) -> tuple[Branch, ...]:
        """The branch tests that its output decided, in order; empty for most ops."""
        tests, index = self._trace.data.branches, self.record.index
        return tuple(Branch(self._trace, i) for i, node in enumerate(tests.nodes) if node == index)

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms of branches that an arrow into it leads into from outside, `THEN@L12`, outermost first."""
        arms = [edge for edge in self._trace.data.branches.arms if edge.target == self.record.index]
        return tuple(dict.fromkeys(f"{edge.arm}@L{edge.line}" for edge in arms))

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

    @property
    def shape_summary(self) -> str:
        """How the output shape changes from pass to pass, `4->2`; "" if it does not."""
        return self.record.shape_summary

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layer) and self.record is other.record

    def __hash__(self) -> int:
        return id(self.record)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.ops[0]), *(name for name in dir(type(self)) if not name.startswith("_"))})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "out" and self.num_passes > 1:  # comparing tensors would compare their elements
            self._refuse(name)
        passes = self.ops
        first = getattr(passes[0], name)
        if any(getattr(op, name) != first for op in passes[1:]):
            self._refuse(name)
        return first

    def _refuse(self, name: str) -> NoReturn:
        what = f"{name} differs between the {self.num_passes} passes of {self.label}"
        fail("layer_pass_ambiguous", what, fix=f'read trace["{self.label}:1"].{name}')


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
    def parent(self) -> str | None:
        """Address of the module around it, None for the model itself."""
        parent = self.record.parent
        return None if parent is None else self._trace.data.modules[parent].address

    @property
    def training(self) -> bool:
        """Whether it was in training mode."""
        return self.record.training

    @property
    def output_ops(self) -> tuple[str, ...]:
        """Labels of the nodes whose tensors its calls returned, in order."""
        data = self._trace.data
        returned = (node for c in self.record.calls for node, _ in data.calls[c].outputs)
        return tuple(data.nodes.label[node] for node in dict.fromkeys(returned))

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


def _total(values: list[Any]) -> Any:
    return None if any(value is None for value in values) else sum(values)
