"""Traces made by hand: a small builder, and the sample traces that plan, scene and DOT tests draw. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torchlens.records.flow import ArmEdge, Branches, BranchTest
from torchlens.records.labels import Namer, op_type, pass_label
from torchlens.records.modules import ModuleCall, ModuleRecord
from torchlens.records.ops import ArgRef, CallSite, LayerRecord
from torchlens.records.state import BufferRecord, ParamRecord
from torchlens.records.tensors import TensorSpec
from torchlens.records.trace_data import NodeTable, TraceData

Shape = tuple[int, ...] | None
WIDTHS = {"float32": 4, "float16": 2, "int64": 8, "bool": 1}


class Ref(NamedTuple):
    """One output of one node."""

    node: int
    output: int = 0


def spec(shape: Shape, dtype: str = "float32") -> TensorSpec:
    nbytes = None if shape is None else math.prod(shape) * WIDTHS[dtype]
    return TensorSpec(shape, dtype, "cpu", nbytes)


@dataclass
class _Node:
    kind: str
    func: str
    path: str
    parents: tuple[ArgRef, ...]
    outs: tuple[TensorSpec, ...]
    call: int
    layer: object
    params: tuple[int, ...] = ()
    buffers: tuple[int, ...] = ()
    value: object = None
    time_s: float | None = None
    config: tuple[tuple[str, object], ...] = ()
    flops: int | None = None
    site: CallSite | None = None
    synthetic: bool = False


@dataclass
class OpenCall:
    """A module call being recorded. Set `returns` before it ends."""

    index: int
    returns: list[Ref] = field(default_factory=list)


class Builder:
    """Records nodes in order. Ops of equal `layer` key are passes of one layer; without a key each op is its own."""

    def __init__(self, model_class: str = "Net", *, training: bool = False) -> None:
        self.model_class, self.training = model_class, training
        self.nodes: list[_Node] = []
        self.modules: list[ModuleRecord] = []
        self.calls: list[ModuleCall] = []
        self.params: list[ParamRecord] = []
        self.buffers: dict[str, BufferRecord] = {}
        self.tests: list[BranchTest] = []
        self.arms: list[ArmEdge] = []
        self._stack: list[int] = []
        self._outputs: list[_Node] = []
        self._param_of: dict[str, int] = {}
        self._module_of: dict[str, int] = {}
        self._module("", model_class)
        self._enter(0)

    # -- state
    def param(self, address: str, shape: tuple[int, ...], *, trainable: bool = True) -> int:
        if address in self._param_of:
            return self._param_of[address]
        index = self._param_of[address] = len(self.params)
        nbytes = math.prod(shape) * 4
        name = address.rpartition(".")[2]
        self.params.append(ParamRecord(index, address, (), name, shape, "float32", nbytes, trainable))
        return index

    def read(self, address: str, shape: tuple[int, ...] = (8,), dtype: str = "float32") -> Ref:
        """The current version of a buffer, made where it is first met."""
        record = self.buffers.get(address)
        if record is None:
            nbytes = math.prod(shape) * WIDTHS[dtype]
            record = BufferRecord(len(self.buffers), address, (), shape, dtype, nbytes)
            self.buffers[address] = record
            self._version(record, ())
        return Ref(record.versions[-1])

    def write(self, address: str, source: Ref, shape: tuple[int, ...] = (8,), dtype: str = "float32") -> Ref:
        """A new version of a buffer, made by an op."""
        self.read(address, shape, dtype)
        self._version(self.buffers[address], (ArgRef(source.node, source.output, ()),))
        return self.read(address)

    def _version(self, record: BufferRecord, parents: tuple[ArgRef, ...]) -> None:
        record.versions = (*record.versions, len(self.nodes))
        node = _Node("buffer", "", record.address, parents, (spec(record.shape, record.dtype),), self._stack[-1], None)
        node.buffers = (record.index,)
        self.nodes.append(node)

    # -- nodes
    def input(self, path: str = "x", shape: Shape = (2, 8), dtype: str = "float32") -> Ref:
        self.nodes.append(_Node("input", "", path, (), (spec(shape, dtype),), 0, None))
        return Ref(len(self.nodes) - 1)

    def constant(self, shape: Shape = (8,), path: str = "") -> Ref:
        self.nodes.append(_Node("constant", "", path, (), (spec(shape),), self._stack[-1], None))
        return Ref(len(self.nodes) - 1)

    def op(
        self,
        func: str,
        args: Sequence[Ref] | Mapping[object, Ref],
        shape: Shape = (2, 8),
        *,
        outs: Sequence[Shape] = (),
        layer: object = None,
        params: Sequence[int] = (),
        reads: Sequence[str] = (),
        late: Sequence[Ref] = (),
        dtype: str = "float32",
        **facts: object,
    ) -> Ref:
        """One call. args: by position, or by path (`("weight",)`, `(0, 1)`, `2`); outs: shapes of several outputs."""
        items = args.items() if isinstance(args, Mapping) else enumerate(args)
        refs = [ArgRef(r.node, r.output, p if isinstance(p, tuple) else (p,)) for p, r in items]
        refs += [ArgRef(r.node, r.output, (), True) for r in late]
        specs = tuple(spec(s, dtype) for s in (outs or (shape,)))
        buffers = tuple(self.buffers[address].index for address in reads)
        index = len(self.nodes)
        facts.setdefault("time_s", 1e-5 * (1 + index * 7 % 5))
        facts.setdefault("flops", 2 * sum(s.numel or 0 for s in specs))
        facts.setdefault("site", CallSite("/home/me/net.py", 10 + index, f"{self.model_class}.forward"))
        node = _Node("op", func, "", tuple(refs), specs, self._stack[-1], layer, tuple(params), buffers)
        self.nodes.append(replace(node, **facts))
        return Ref(index)

    def output(self, source: Ref, path: str = "") -> None:
        """One tensor of the result, in container order."""
        origin = self.nodes[source.node].outs[source.output]
        self._outputs.append(_Node("output", "", path, (ArgRef(*source, (0,)),), (origin,), 0, None))

    # -- branches
    def test(self, tested: Ref, construct: str = "if", value: bool = True, line: int = 5, **facts: object) -> int:
        """A tensor turned into a bool; gives the number of the test."""
        test = BranchTest(tested.node, construct, value, "/home/me/net.py", line, call=self._stack[-1])
        self.tests.append(replace(test, **facts))
        return len(self.tests) - 1

    def enter(self, test: int, target: Ref, arm: str = "THEN", *, number: int = 0, sources: Sequence[Ref] = ()) -> Ref:
        """Make arrows into an op lead into an arm: those from some sources, or all."""
        line, parents = self.tests[test].line, self.nodes[target.node].parents
        nodes = [ref.node for ref in sources] or list(dict.fromkeys(ref.node for ref in parents))
        self.arms += [ArmEdge(node, target.node, arm, number, test, line) for node in nodes]
        return target

    # -- modules
    @contextmanager
    def module(self, address: str, class_name: str = "Block") -> Iterator[OpenCall]:
        known = self._module_of.get(address)
        opened = OpenCall(self._enter(self._module(address, class_name) if known is None else known))
        yield opened
        self._leave(opened.returns)

    def leaf(self, address: str, class_name: str, func: str, args: Sequence[Ref], shape: Shape, **facts: object) -> Ref:
        """A module that runs one op."""
        with self.module(address, class_name) as call:
            out = self.op(func, args, shape, **facts)
            call.returns = [out]
        return out

    def linear(self, address: str, x: Ref, size: int, **facts: object) -> Ref:
        origin = self.nodes[x.node].outs[x.output].shape or ()
        trainable = bool(facts.pop("trainable", True))
        weight = self.param(f"{address}.weight", (size, origin[-1]), trainable=trainable)
        bias = self.param(f"{address}.bias", (size,), trainable=trainable)
        config = (("in_features", origin[-1]), ("out_features", size))
        shape = (*origin[:-1], size)
        return self.leaf(address, "Linear", "linear", [x], shape, params=(weight, bias), config=config, **facts)

    def batch_norm(self, address: str, x: Ref, width: int) -> Ref:
        """Train mode: the counter increment, the norm, and new versions of the three buffers."""
        origin = self.nodes[x.node].outs[x.output].shape
        params = [self.param(f"{address}.{name}", (width,)) for name in ("weight", "bias")]
        counter, mean, var = (f"{address}.{name}" for name in ("num_batches_tracked", "running_mean", "running_var"))
        with self.module(address, "BatchNorm2d") as call:
            if self.training:
                step = self.op("add_", [self.read(counter, (), "int64")], (), dtype="int64", config=(("other", 1),))
                self.write(counter, step, (), "int64")
            args = {0: x, 3: self.read(mean, (width,)), 4: self.read(var, (width,))}
            config = (("num_features", width),)
            out = self.op("batch_norm", args, origin, params=params, reads=(mean, var), config=config)
            if self.training:
                self.write(mean, out, (width,))
                self.write(var, out, (width,))
            call.returns = [out]
        return out

    def _module(self, address: str, class_name: str) -> int:
        index = len(self.modules)
        above = address.rpartition(".")[0]
        while above and above not in self._module_of:
            above = above.rpartition(".")[0]
        parent = self._module_of[above] if address else None
        self._module_of[address] = index
        self.modules.append(ModuleRecord(index, address, (), class_name, parent, (), self.training, (), (), ()))
        return index

    def _enter(self, module: int) -> int:
        index = len(self.calls)
        record = self.modules[module]
        start = len(self.nodes)
        parent = self._stack[-1] if self._stack else None
        self.calls.append(ModuleCall(index, module, len(record.calls) + 1, parent, (), (), (start, start)))
        record.calls = (*record.calls, index)
        self._stack.append(index)
        return index

    def _leave(self, returns: Sequence[Ref]) -> None:
        call = self.calls[self._stack.pop()]
        call.span = (call.span[0], len(self.nodes))
        call.outputs = tuple((ref.node, ref.output) for ref in returns)

    # -- result
    def build(self) -> TraceData:
        self._leave([Ref(ref.node, ref.output) for node in self._outputs for ref in node.parents])
        self.nodes += self._outputs
        for module in self.modules[1:]:
            parent = self.modules[module.parent or 0]
            parent.children = (*parent.children, module.index)
        layers, layer_of, passes = self._layers()
        rows = self.nodes
        for index, row in enumerate(rows):
            if row.kind == "op":
                call = self.calls[row.call]
                call.ops = (*call.ops, index)
        for index, row in enumerate(rows):
            for used in row.params:
                record = self.params[used]
                record.used_by = (*record.used_by, index)
        table = NodeTable(
            label=[pass_label(layers[k].label, p, layers[k].num_passes) for k, p in zip(layer_of, passes, strict=True)],
            layer=layer_of,
            pass_number=passes,
            kind=[row.kind for row in rows],
            func=[row.func for row in rows],
            path=[row.path for row in rows],
            parents=[row.parents for row in rows],
            outs=[row.outs for row in rows],
            call=[row.call for row in rows],
            params=[row.params for row in rows],
            buffers=[row.buffers for row in rows],
            inplace=[row.func.endswith("_") for row in rows],
            synthetic=[row.synthetic for row in rows],
            value=[row.value for row in rows],
            time_s=[row.time_s for row in rows],
            config=[row.config for row in rows],
            flops=[row.flops for row in rows],
            macs=[None for _ in rows],
            flops_backward=[None for _ in rows],
            site=[row.site for row in rows],
            composite=["" for _ in rows],
        )
        return TraceData(
            self.model_class, self.training, table, layers, self.modules, self.calls, self.params,
            list(self.buffers.values()), Branches(self.tests, self.arms),
        )  # fmt: skip

    def _layers(self) -> tuple[list[LayerRecord], list[int], list[int]]:
        namer = Namer()
        layers: list[LayerRecord] = []
        known: dict[object, int] = {}
        layer_of: list[int] = []
        passes: list[int] = []
        for index, row in enumerate(self.nodes):
            key = ("layer", row.layer) if row.layer is not None else ("node", index)
            if key not in known:
                known[key] = len(layers)
                kind = op_type(row.func) if row.kind == "op" else row.kind
                layers.append(LayerRecord(*_named(namer, kind, row.kind), ()))
            layer = layers[known[key]]
            layer.nodes = (*layer.nodes, index)
            layer_of.append(known[key])
            passes.append(len(layer.nodes))
        return layers, layer_of, passes


def _named(namer: Namer, type_name: str, kind: str) -> tuple[str, str, int, int | None]:
    label, n, step = namer.next(type_name, stepped=kind == "op")
    return label, type_name, n, step


# -- sample traces
def chain() -> TraceData:
    """input -> fc1 -> relu -> fc2 -> output."""
    b = Builder("Mlp")
    x = b.input("x", (2, 8))
    h = b.op("relu", [b.linear("fc1", x, 16)], (2, 16), flops=32)
    b.output(b.linear("fc2", h, 4))
    return b.build()


def residual(count: int = 2) -> TraceData:
    """Blocks of norm, mlp(fc1, relu, fc2) and a residual add that is the block's own op."""
    b = Builder("Stack")
    h = b.linear("embed", b.input("x", (2, 8)), 8)
    for k in range(count):
        with b.module(f"blocks.{k}", "Block") as block:
            norm = b.leaf(
                f"blocks.{k}.norm", "LayerNorm", "layer_norm", [h], (2, 8), config=(("normalized_shape", (8,)),)
            )
            with b.module(f"blocks.{k}.mlp", "Mlp") as mlp:
                inner = b.op("relu", [b.linear(f"blocks.{k}.mlp.fc1", norm, 16)], (2, 16))
                mlp.returns = [b.linear(f"blocks.{k}.mlp.fc2", inner, 8)]
            h = b.op("add", [h, mlp.returns[0]], (2, 8))
            block.returns = [h]
    b.output(b.linear("head", h, 4))
    return b.build()


def loop(steps: int = 3) -> TraceData:
    """A recurrent cell: inp(x) for every step, rec(h) chained from zeros."""
    b = Builder("Rnn")
    x = b.input("x", (2, 8))
    h = b.op("zeros_like", [x], (2, 8), time_s=4e-6)
    for _ in range(steps):
        a = b.linear("inp", x, 8, layer="inp")
        c = b.linear("rec", h, 8, layer="rec")
        h = b.op("tanh", [b.op("add", [a, c], (2, 8), layer="add")], (2, 8), layer="tanh")
    b.output(h)
    return b.build()


def branch() -> TraceData:
    """`if x.mean() > 0: return relu(pos(x))`."""
    b = Builder("IfThen")
    x = b.input("x", (2, 8))
    mean = b.op("mean", [x], (), value=0.25)
    test = b.test(b.op("gt", [mean], (), dtype="bool", value=True, config=(("other", 0),)))
    pos = b.enter(test, b.linear("pos", x, 4))
    b.output(b.op("relu", [pos], (2, 4)))
    return b.build()


def branches_in_loop() -> TraceData:
    """One layer in both arms of a branch in a loop, and an arm in an arm that holds a block."""
    b = Builder("Steps")
    h = b.input("x", (2, 8))
    for value in (True, False, True):
        total = b.op("sum", [h], (), layer="sum")
        test = b.test(b.op("gt", [total], (), layer="gt", dtype="bool"), value=value)
        h = b.enter(test, b.linear("fc", h, 8, layer="fc"), "THEN" if value else "ELSE")
        h = b.op("sub", [h], (2, 8), layer="sub") if value else b.op("add", [h], (2, 8), layer="add")
    outer = b.test(b.op("any", [h], (), dtype="bool"), line=9)
    inner = b.test(b.op("all", [h], (), dtype="bool"), value=False, line=10, notes=("not",))
    with b.module("body") as call:
        first = b.enter(inner, b.enter(outer, b.linear("body.fc", h, 8)))
        call.returns = [b.op("relu", [first])]
    b.output(call.returns[0])
    return b.build()


def multi_output() -> TraceData:
    """An LSTM with three outputs, max over a dim with two, a scalar, and a dict of results."""
    b = Builder("Tagger")
    x = b.input("x", (2, 5, 8))
    weights = [
        b.param(f"lstm.{name}_l0", (64, 8 if name == "weight_ih" else 16)) for name in ("weight_ih", "weight_hh")
    ]
    with b.module("lstm", "LSTM") as call:
        y = b.op("lstm", [x], outs=[(2, 5, 16), (1, 2, 16), (1, 2, 16)], params=weights, flops=None)
        call.returns = [Ref(y.node, k) for k in range(3)]
    best = b.op("max", [y], outs=[(2, 16), (2, 16)], config=(("dim", 1),))
    mean = b.op("mean", [best], (), value=-0.4921)
    b.output(Ref(best.node, 0), "best")
    b.output(Ref(best.node, 1), "where")
    b.output(Ref(y.node, 1), "state.0")
    b.output(mean, "loss")
    return b.build()


def demo() -> TraceData:
    """Two blocks of conv, norm and relu in train mode, two pools, mean and a linear: 12 ops, 19.4 KB, 1.61K params."""
    b = Builder("TinyCnn", training=True)
    h = b.input("x", (1, 3, 8, 8))
    with b.module("features", "Sequential") as features:
        for k, (cin, cout) in enumerate(((3, 8), (8, 16))):
            place = f"features.{k}"
            with b.module(place, "ConvBlock") as block:
                weight, bias = (
                    b.param(f"{place}.conv.weight", (cout, cin, 3, 3)),
                    b.param(f"{place}.conv.bias", (cout,)),
                )
                shape = (1, cout, 8, 8)
                config = (("in_channels", cin), ("out_channels", cout), ("kernel_size", (3, 3)), ("padding", (1, 1)))
                h = b.leaf(f"{place}.conv", "Conv2d", "conv2d", [h], shape, params=(weight, bias), config=config)
                h = b.batch_norm(f"{place}.norm", h, cout)
                h = b.op("relu", [h], shape)
                block.returns = [h]
        features.returns = [h]
    for k, side in enumerate((4, 2)):
        config = (("kernel_size", 2),)
        h = b.leaf(f"pool{k + 1}", "MaxPool2d", "max_pool2d", [h], (1, 16, side, side), config=config)
    h = b.op("mean", [h], (1, 16), config=(("dim", (2, 3)),))
    b.output(b.linear("head", h, 10))
    return b.build()


def state() -> TraceData:
    """A buffer that is no bookkeeping, written and read again, a constant, frozen and mixed parameters."""
    b = Builder("Memory")
    x = b.input("x", (2, 8))
    h = b.linear("frozen", x, 8, trainable=False)
    with b.module("cell", "Cell") as cell:
        kept = b.op("mul", [h, b.read("cell.decay")], (2, 8))
        b.write("cell.memory", kept, (2, 8))
        mixed = (b.param("cell.weight", (8, 8)), b.param("cell.bias", (8,), trainable=False))
        h = b.op("linear", [b.read("cell.memory")], (2, 8), params=mixed)
        cell.returns = [h]
    h = b.op("sub", [h, b.constant((8,), "offset")], (2, 8))
    b.output(h)
    return b.build()


def norm() -> TraceData:
    """A linear, a batch norm in train mode and a relu: 4 ops with the norm's step counter."""
    b = Builder("Norm", training=True)
    h = b.batch_norm("norm", b.linear("fc", b.input("x", (2, 4)), 6), 6)
    b.output(b.op("relu", [h], (2, 6)))
    return b.build()


def memory(steps: int = 3) -> TraceData:
    """A buffer that every pass of a loop reads and assigns anew."""
    b = Builder("Memory")
    x = b.input("x", (2, 8))
    for _ in range(steps):
        h = b.op("sub", [b.linear("fc", x, 8, layer="fc"), b.read("memory", (2, 8))], (2, 8), layer="sub")
        b.write("memory", b.op("tanh", [h], (2, 8), layer="tanh"), (2, 8))
    b.output(b.op("neg", [b.read("memory", (2, 8))], (2, 8)))
    return b.build()


def orphans() -> TraceData:
    """A dead end, an unused input, and orphans: a chain, a module's one op, a routine buffer and its reader."""
    b = Builder("Orphans")
    x = b.input("x", (2, 8))
    b.input("unused", (3,))
    b.op("mul", [b.op("arange", [], (8,)), b.constant()], (8,))
    b.linear("spare", b.op("rand", [], (1, 8)), 8)
    b.op("sqrt", [b.read("norm.running_var")], (8,))
    b.op("exp", [x], (2, 8))
    b.output(b.op("relu", [x], (2, 8)))
    return b.build()


def awkward() -> TraceData:
    """Hostile names, no shapes, one tensor read twice, an input that is an output, a late write, a dead end."""
    b = Builder('A<b>&"c\\N[0]')
    x = b.input("kw.a b", None)
    y = b.input("ys.0", (3,))
    with b.module("bad.name-with <>&\"'\\ 漢\x01", "Cls\nName") as call:
        twice = b.op("stack", {(0, 0): x, (0, 1): x}, None, time_s=None, flops=None)
        called = b.op("mul", [twice, twice], (3,), config=(("other", "a\\N<b>"),))
        call.returns = [called]
    square = b.op("matmul", [called, called], (3,))
    view = b.op("__getitem__", [square], (1,), config=(("index", "[:, 0]"),))
    write = b.op("fill_", [view], (1,), value=True)
    late = b.op("where", {0: square, 1: y, ("other",): called, ("rest", 0): x}, (3,), late=[write])
    b.op("sin", [late], (3,))
    b.output(late, "a")
    b.output(y, "same")
    return b.build()


def tree(levels: int = 4) -> TraceData:
    """Modules nested several levels deep, one op between two children at each level."""
    b = Builder("Tree")
    h = b.input("x", (2, 8))

    def grow(address: str, level: int, value: Ref) -> Ref:
        with b.module(address, f"Level{level}") as call:
            value = b.linear(f"{address}.a", value, 8)
            if level < levels:
                value = grow(f"{address}.inner", level + 1, value)
            value = b.op("sigmoid", [value], (2, 8))
            value = b.linear(f"{address}.b", value, 8)
            call.returns = [value]
        return value

    b.output(grow("top", 1, h))
    return b.build()


def large(ops: int = 5000) -> TraceData:
    """A transformer-like chain with residuals, three module levels and about the given number of ops."""
    b = Builder("Large")
    h = b.linear("embed", b.input("x", (2, 16)), 16)
    for k in range(max(1, ops // 10)):
        with b.module(f"layers.{k}", "Layer") as layer:
            with b.module(f"layers.{k}.attn", "Attention") as attn:
                q, v = b.linear(f"layers.{k}.attn.q", h, 16), b.linear(f"layers.{k}.attn.v", h, 16)
                score = b.op("softmax", [b.op("matmul", [q, h], (2, 16))], (2, 16), config=(("dim", -1),))
                attn.returns = [b.op("matmul", [score, v], (2, 16))]
            h = b.op("add", [h, attn.returns[0]], (2, 16))
            with b.module(f"layers.{k}.mlp", "Mlp") as mlp:
                inner = b.op("gelu", [b.linear(f"layers.{k}.mlp.up", h, 64)], (2, 64))
                mlp.returns = [b.linear(f"layers.{k}.mlp.down", inner, 16)]
            h = b.op("add", [h, mlp.returns[0]], (2, 16))
            layer.returns = [h]
    b.output(h)
    return b.build()


SAMPLES = {
    "chain": chain,
    "residual": residual,
    "loop": loop,
    "branch": branch,
    "branches_in_loop": branches_in_loop,
    "multi_output": multi_output,
    "demo": demo,
    "memory": memory,
    "orphans": orphans,
    "state": state,
    "awkward": awkward,
    "tree": tree,
}
