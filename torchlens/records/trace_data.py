"""The trace as columns: one list per fact, one row per node; rows become `OpRecord` objects on first access.

Nodes are ordered: inputs (argument order), then ops in execution order with constants and buffer versions where they
are first read or written, then outputs (container order). An index into that order names a node everywhere below
the public face. Nothing here knows torch; drawing and export need nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from torchlens.records.flow import Branches
from torchlens.records.labels import call_key
from torchlens.records.modules import ModuleCall, ModuleRecord
from torchlens.records.ops import ArgRef, CallSite, Cost, LayerRecord, OpRecord
from torchlens.records.payloads import Held, OutStats
from torchlens.records.provenance import Environment, InputProvenance, Outcome
from torchlens.records.state import BufferRecord, ParamRecord
from torchlens.records.tensors import TensorSpec

T = TypeVar("T")


class Deferred(Sequence[T], Generic[T]):
    """A column whose rows are computed on first access and kept."""

    def __init__(self, length: int, compute: Callable[[int], T]) -> None:
        self._length, self._compute = length, compute
        self._rows: dict[int, T] = {}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:  # type: ignore[override]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        index %= self._length
        if index not in self._rows:
            self._rows[index] = self._compute(index)
        return self._rows[index]

    def __iter__(self) -> Iterator[T]:
        return (self[index] for index in range(self._length))


@dataclass(slots=True)
class NodeTable:
    """The columns. All have the same length; see `OpRecord` for the meaning of each.

    config: arguments worth showing; flops and macs: forward counts, flops_backward: of the gradients of its inputs and
    parameters, None = unknown; time_s: seconds, None = not
    measured; layer: index into `TraceData.layers`; call: index of the innermost module call; composite: the public
    torch function whose body made the call, "" if the user made it; stats: one `OutStats` per output;
    num_autograd_tensors and autograd_memory: what the op's grad_fn held after the call, bytes; device_time:
    nanoseconds of the kernels that the call launched, None if it launched none, and num_kernels, how many. All of these
    are None where not measured.
    """

    label: Sequence[str] = ()
    layer: Sequence[int] = ()
    pass_number: Sequence[int] = ()
    kind: Sequence[str] = ()
    func: Sequence[str] = ()
    path: Sequence[str] = ()
    parents: Sequence[tuple[ArgRef, ...]] = ()
    outs: Sequence[tuple[TensorSpec, ...]] = ()
    call: Sequence[int] = ()
    params: Sequence[tuple[int, ...]] = ()
    buffers: Sequence[tuple[int, ...]] = ()
    inplace: Sequence[bool] = ()
    synthetic: Sequence[bool] = ()
    value: Sequence[object] = ()
    time_s: Sequence[float | None] = ()
    config: Sequence[tuple[tuple[str, object], ...]] = ()
    flops: Sequence[int | None] = ()
    macs: Sequence[int | None] = ()
    flops_backward: Sequence[int | None] = ()
    site: Sequence[CallSite | None] = ()
    composite: Sequence[str] = ()
    stats: Sequence[tuple[OutStats | None, ...] | None] = ()
    num_autograd_tensors: Sequence[int | None] = ()
    autograd_memory: Sequence[int | None] = ()
    device_time: Sequence[int | None] = ()
    num_kernels: Sequence[int | None] = ()

    def __post_init__(self) -> None:
        for name in ("stats", "num_autograd_tensors", "autograd_memory", "device_time", "num_kernels"):
            if not getattr(self, name):
                setattr(self, name, [None] * len(self.label))

    def __len__(self) -> int:
        return len(self.label)


@dataclass
class TraceData:
    """Everything recorded of one forward pass, without tensors."""

    model_class: str
    training: bool
    nodes: NodeTable
    layers: list[LayerRecord]
    modules: list[ModuleRecord]
    calls: list[ModuleCall]
    params: list[ParamRecord]
    buffers: list[BufferRecord]
    branches: Branches = field(default_factory=Branches)
    provenance: InputProvenance = field(default_factory=InputProvenance)
    environment: Environment = field(default_factory=Environment)
    outcome: Outcome = field(default_factory=Outcome)
    annotations: dict[str, object] = field(default_factory=dict)
    # Bytes that autograd kept for the backward pass, each storage once; None if not measured.
    saved_for_backward: int | None = None
    # What each parameter held while the forward ran; empty if none was looked at.
    param_values: Sequence[Held] = ()
    # "joined" if every op was found in the profiler's session, else why not; None without a session.
    kernel_join: str | None = None
    _records: dict[int, OpRecord] = field(default_factory=dict, repr=False)

    # -- rows
    def record(self, index: int) -> OpRecord:
        """The node at this index as a row object, made once."""
        found = self._records.get(index)
        if found is None:
            found = self._records[index] = self._make_record(index)
        return found

    def _make_record(self, i: int) -> OpRecord:
        t, layer = self.nodes, self.layers[self.nodes.layer[i]]
        return OpRecord(
            index=i,
            label=t.label[i],
            layer_label=layer.label,
            pass_number=t.pass_number[i],
            num_passes=layer.num_passes,
            kind=t.kind[i],
            func_name=t.func[i],
            type=layer.type,
            n=layer.n,
            step=layer.step,
            path=t.path[i],
            inputs=t.parents[i],
            outs=t.outs[i],
            config=t.config[i],
            params=tuple(self.params[p].address for p in t.params[i]),
            buffers=tuple(self.buffers[b].address for b in t.buffers[i]),
            module_stack=self.module_stack(t.call[i]),
            is_inplace=t.inplace[i],
            synthetic=t.synthetic[i],
            value=t.value[i],
            call_site=t.site[i],
            composite=t.composite[i],
            stats=t.stats[i],
            cost=self._cost(i),
        )

    def _cost(self, i: int) -> Cost:
        t = self.nodes
        return Cost(
            func_duration=t.time_s[i],
            flops_forward=t.flops[i],
            flops_backward=t.flops_backward[i],
            macs_forward=t.macs[i],
            activation_memory=self.nbytes[i],
            num_autograd_tensors=t.num_autograd_tensors[i],
            autograd_memory=t.autograd_memory[i],
            device_time=t.device_time[i],
        )

    # -- names
    @cached_property
    def index_of(self) -> dict[str, int]:
        """Node index of each label."""
        return {label: i for i, label in enumerate(self.nodes.label)}

    @cached_property
    def layer_of(self) -> dict[str, int]:
        """Layer index of each layer label."""
        return {layer.label: i for i, layer in enumerate(self.layers)}

    @cached_property
    def module_of(self) -> dict[str, int]:
        """Module index of each address, aliases included; the root's is ""."""
        table: dict[str, int] = {}
        for module in self.modules:
            for address in (module.address, *module.aliases):
                table.setdefault(address, module.index)
        return table

    def call_key(self, call: int) -> str:
        """Key of a module call, `features.0:1`."""
        record = self.calls[call]
        return call_key(self.modules[record.module].address, record.number)

    def call_chain(self, call: int) -> tuple[int, ...]:
        """Indexes of the module calls from the root to this one, itself included."""
        chain: list[int] = []
        current: int | None = call
        while current is not None:
            chain.append(current)
            current = self.calls[current].parent
        return tuple(reversed(chain))

    def module_stack(self, call: int) -> tuple[str, ...]:
        """Keys of the module calls around a node, outermost first, the root left out."""
        return tuple(self.call_key(c) for c in self.call_chain(call)[1:])

    # -- derived columns
    @cached_property
    def children(self) -> list[tuple[int, ...]]:
        """Nodes that read each node, ascending, each once."""
        table: list[list[int]] = [[] for _ in range(len(self.nodes))]
        for i, refs in enumerate(self.nodes.parents):
            for source in dict.fromkeys(ref.node for ref in refs):
                table[source].append(i)
        return [tuple(row) for row in table]

    @cached_property
    def nbytes(self) -> list[int | None]:
        """Bytes of each node's outputs together; None if one of them is unknown."""
        table: list[int | None] = []
        for outs in self.nodes.outs:
            sizes = [spec.nbytes for spec in outs]
            table.append(None if None in sizes else sum(size for size in sizes if size is not None))
        return table

    @cached_property
    def from_input(self) -> list[bool]:
        """Whether each node is an input or computed from one."""
        flags = [kind == "input" for kind in self.nodes.kind]
        for i, refs in enumerate(self.nodes.parents):
            flags[i] = flags[i] or any(flags[ref.node] for ref in refs)
        return flags

    @cached_property
    def orphan(self) -> list[bool]:
        """Nodes that no input leads to and that lead to no output, value read by Python or written buffer."""
        used = list(self.from_input)
        for node in self.branches.steering:
            used[node] = True
        kinds, parents = self.nodes.kind, self.nodes.parents
        for i in range(len(kinds) - 1, -1, -1):
            used[i] = used[i] or kinds[i] == "output" or (kinds[i] == "buffer" and bool(parents[i]))
            if used[i]:
                for ref in parents[i]:
                    used[ref.node] = True
        return [not flag for flag in used]

    @cached_property
    def op_indexes(self) -> list[int]:
        """Indexes of the nodes of kind op."""
        return [i for i, kind in enumerate(self.nodes.kind) if kind == "op"]

    @cached_property
    def num_params(self) -> int:
        """Parameter elements."""
        return sum(p.numel for p in self.params)

    @cached_property
    def num_params_trainable(self) -> int:
        """Parameter elements that take a gradient."""
        return sum(p.numel for p in self.params if p.trainable)

    @cached_property
    def param_bytes(self) -> int:
        """Bytes of all parameters."""
        return sum(p.nbytes for p in self.params)

    @cached_property
    def output_bytes(self) -> int:
        """Bytes of the outputs of all ops."""
        return sum(self.nbytes[i] or 0 for i in self.op_indexes)

    @cached_property
    def unknown_flops(self) -> list[int]:
        """Indexes of the ops whose forward FLOPs are not known; they are in no sum."""
        return [i for i in self.op_indexes if self.nodes.flops[i] is None and not self.nodes.synthetic[i]]

    @cached_property
    def totals(self) -> dict[str, int | float | None]:
        """Counts and sums over the whole network. A sum is over the ops that know theirs, None if none does.

        ops, params, trainable_params; param_bytes, output_bytes; flops, macs and flops_backward; flops_unknown_ops: ops
        that are in none of the FLOP sums; flops_backward_unknown_ops: those that are not in the backward sum; time_s:
        seconds, time_unknown_ops; autograd_bytes: kept for the backward pass, each storage once, None if not measured,
        with autograd_unknown_ops, None too then.
        """
        ops = [i for i in self.op_indexes if not self.nodes.synthetic[i]]
        times = [self.nodes.time_s[i] for i in ops]
        backward = [self.nodes.flops_backward[i] for i in ops]
        measured = self.saved_for_backward is not None
        return {
            "ops": len(self.op_indexes),
            "params": self.num_params,
            "trainable_params": self.num_params_trainable,
            "param_bytes": self.param_bytes,
            "output_bytes": self.output_bytes,
            "flops": _known_sum(self.nodes.flops[i] for i in ops),
            "flops_unknown_ops": len(self.unknown_flops),
            "macs": _known_sum(self.nodes.macs[i] for i in ops),
            "flops_backward": _known_sum(backward),
            "flops_backward_unknown_ops": backward.count(None),
            "time_s": _known_sum(times),
            "time_unknown_ops": times.count(None),
            "autograd_bytes": self.saved_for_backward,
            "autograd_unknown_ops": sum(self.nodes.autograd_memory[i] is None for i in ops) if measured else None,
        }


def _known_sum(values: Iterable[float | int | None]) -> float | int | None:
    """The sum of the values that are known, None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
