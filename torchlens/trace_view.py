"""`Trace`: a thin face over `TraceData` - lookup, views of single records, and one-line delegates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlens.base.errors import fail, unknown
from torchlens.base.files import write_atomically
from torchlens.branch_views import Branch
from torchlens.measured import Measured
from torchlens.record_views import Layer, Module, Op, View
from torchlens.records.check import check
from torchlens.records.export import to_dict, to_networkx
from torchlens.records.labels import split_pass
from torchlens.records.modules import ModuleRecord
from torchlens.records.provenance import InputProvenance, Outcome
from torchlens.records.state import BufferRecord, ParamRecord
from torchlens.records.trace_data import TraceData
from torchlens.viz.annotating import Annotated

if TYPE_CHECKING:
    from typing import Unpack

    import networkx

    from torchlens.analysis.recording import Recording
    from torchlens.drawings import Drawing
    from torchlens.settings.compose import Layer as SettingsLayer
    from torchlens.settings.keywords import DrawKeywords


_SEE = "list(trace) shows the ops, trace.modules the modules, trace.params the parameters"


class Trace(Measured, Annotated):
    """One recorded forward pass: read it, export it, draw it.

    data: everything recorded, as plain columns; result: what the forward returned (None when only metadata was kept).
    """

    def __init__(self, recording: Recording) -> None:
        self.data: TraceData = recording.data
        self.result = recording.result
        self._payloads = recording.payloads

    def __repr__(self) -> str:
        return f"Trace({self.data.model_class}, {len(self)} ops, {self.num_params} params)"

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
    def module_calls(self) -> tuple[str, ...]:
        """Keys of all module calls in order of entry, `features.0:1`; the model's own is `self:1`."""
        return tuple(self.data.call_key(call.index) for call in self.data.calls)

    @property
    def input_layers(self) -> tuple[str, ...]:
        """Labels of the inputs, in argument order."""
        return self._of_kind("input")

    @property
    def output_layers(self) -> tuple[str, ...]:
        """Labels of the outputs, in container order."""
        return self._of_kind("output")

    @property
    def orphans(self) -> tuple[str, ...]:
        """Labels of nodes that no input leads to and that lead nowhere."""
        return tuple(label for label, orphan in zip(self.data.nodes.label, self.data.orphan, strict=True) if orphan)

    def _of_kind(self, kind: str) -> tuple[str, ...]:
        nodes = self.data.nodes
        return tuple(label for label, own in zip(nodes.label, nodes.kind, strict=True) if own == kind)

    @property
    def num_ops(self) -> int:
        """Recorded ops."""
        return len(self)

    @property
    def num_params(self) -> int:
        """Parameter elements."""
        return self.data.num_params

    @property
    def num_params_trainable(self) -> int:
        """Parameter elements that take a gradient."""
        return self.data.num_params_trainable

    @property
    def num_params_frozen(self) -> int:
        """Parameter elements that take none."""
        return self.num_params - self.num_params_trainable

    @property
    def total_activation_memory(self) -> int:
        """Bytes of the outputs of all ops; not live or peak memory."""
        return self.data.output_bytes

    @property
    def total_param_memory(self) -> int:
        """Bytes of all parameters."""
        return self.data.param_bytes

    @property
    def total_func_duration(self) -> float | None:
        """Seconds of all ops that were timed, None if none was."""
        return self._total("time_s")

    @property
    def total_flops_forward(self) -> int | None:
        """Forward FLOPs of the ops that know theirs; `ops_without_flops` lists the others. None if none does."""
        return self._total("flops")

    @property
    def total_macs_forward(self) -> int | None:
        """Forward multiply-accumulates of matrix products, convolutions and attention; None if there is none."""
        return self._total("macs")

    @property
    def total_flops_backward(self) -> int | None:
        """Estimated FLOPs of the gradients of the ops that know theirs; None if none does."""
        return self._total("flops_backward")

    @property
    def total_autograd_memory(self) -> int | None:
        """Bytes that autograd kept for the backward pass, each storage once; None if not measured."""
        return self._total("autograd_bytes")

    @property
    def ops_without_flops(self) -> tuple[str, ...]:
        """Labels of the ops whose forward FLOPs are unknown; they are in no sum."""
        return tuple(self.data.nodes.label[i] for i in self.data.unknown_flops)

    @property
    def totals(self) -> dict[str, int | float | None]:
        """Counts and sums over the whole network, and how many ops each sum lacks."""
        return dict(self.data.totals)

    def _total(self, name: str) -> Any:
        return self.data.totals[name]

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Tensors that Python turned into a bool, in order, with the construct that asked and the arm it took.

        Reads the source files of the tests when first asked.
        """
        return tuple(Branch(self, i) for i in range(len(self.data.branches)))

    @property
    def outcome(self) -> Outcome:
        """How the run ended."""
        return self.data.outcome

    @property
    def provenance(self) -> InputProvenance:
        """Where the input came from."""
        return self.data.provenance

    # -- lookup
    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __getitem__(self, name: str) -> Op | Layer | Module:
        """By label with pass, layer label, buffer version or module address, in this order.

        A bare label of a layer with several passes gives the Layer.
        """
        if not isinstance(name, str):
            fail("label_not_found", f"a trace is read by name, not by {name!r}", fix="read trace.ops[0] by position")
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
        raise unknown("label_not_found", f"nothing in the trace is called {name!r}", name, known, otherwise=_SEE)

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
            what = f"no node is called {name!r}"
            raise unknown("label_not_found", what, name, self.data.nodes.label, otherwise=_SEE)
        return index

    def _layer_index(self, name: str) -> int:
        if name not in self.data.layer_of:
            what = f"no layer is called {name!r}"
            raise unknown("label_not_found", what, name, self.data.layer_of, otherwise=_SEE)
        return self.data.layer_of[name]

    def _module_index(self, name: str) -> int:
        address = "" if name == "self" else name.removeprefix("@")
        if address not in self.data.module_of:
            what = f"no module has the address {name!r}"
            raise unknown("label_not_found", what, address, self.data.module_of, otherwise=_SEE)
        return self.data.module_of[address]

    def value(self, index: int) -> Any:
        """The kept output of a node, by its index. Refused if it was not kept or was overwritten."""
        label = self.data.nodes.label[index]
        if self._payloads is None:
            fail("payload_unavailable", f"the value of {label} was not kept: only metadata was recorded", label=label)
        return self._payloads.value(index, label)

    # -- files
    def save(self, path: str | Path) -> Path:
        """Write records, provenance and kept values into one file, whole or not at all; `torchlens.load` reads it.

        The file is in the safetensors format and holds no code. Tensors that share memory share it in the file. What
        it cannot hold is named by a warning: sparse, nested and quantized tensors, tensors of a class of their own,
        annotations that are no plain values. A result that is not made of tensors and numbers in plain containers is
        left out.
        Raises: InvalidArgumentError[output_path_invalid, save_too_large].
        """
        from torchlens.archive import save_trace

        return save_trace(self, path)

    # -- export
    def check(self) -> None:
        """Verify every structural rule of the trace; raises CaptureError[trace_inconsistent]."""
        check(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able facts, schema `torchlens_trace_v1`."""
        return to_dict(self.data)

    def to_json(self, path: str | Path) -> Path:
        """Write `to_dict()` as JSON; the file appears whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        write_atomically(Path(path), text.encode() + b"\n")
        return Path(path)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """A `networkx.MultiDiGraph` with the same attributes; one edge per tensor read."""
        return to_networkx(self.data)

    # -- drawing
    def draw(self, path: str | Path | None = None, **options: Unpack[DrawKeywords]) -> Drawing:
        """Draw the trace; with a path, write it (PDF unless the extension or file_format says otherwise).

        Without a path nothing is written; a notebook shows the result. Every keyword wins over the view's own setting.

        view: a question to answer, "speed"; None draws the plain graph.
        theme: "torchlens", "paper", "dark", "colorblind", "high_contrast", or a mapping that extends one.
        rolled: draw each layer once and turn repetition into loops.
        depth: levels of the module tree drawn open; deeper modules are one box each.
        module: draw only the inside of this module: its address, its record, or one call of it, "blocks.1:2".
        direction: "bottomup", "topdown", "leftright" or "rightleft".
        collapse: "none", "auto", "max", or a level from 0.0 to 1.0: how much is folded into boxes.
        fold_repeats: draw the first of identical modules in a row and count the rest; None: as collapse needs it.
        collapse_rules: [{"class": "Attention*", "do": "fold"}], by class, address or op; fold draws a module as one
            box, keep leaves it open, hide takes ops off the page and bridges them with dashed arrows.
        node_style: "profiling" adds rows for time, output size, code line and function; "attention" those of its parts.
        node_label_fields: rows of the node labels in this order, ["name", "shape", "dtype"]; None: the usual ones.
        show_buffers: "meaningful" leaves out routine bookkeeping; "never", "always".
        show_exceptions: show dtype and device where they are not those of most tensors.
        show_nonfinite: mark what holds NaN or Inf and where that starts; needs kept values or `out_stats`.
        show_orphans: draw the ops that no input leads to and that lead nowhere.
        show_legend: key of fills and shapes; None: only with a colour channel or a focused module.
        show_redundant_args: show arguments that the shapes already say.
        show_saved_for_backward: show how many tensors each op kept for the backward pass, and how large they are.
        show_edge_shapes: write the shape of its tensor on each arrow.
        show_containers: "labels" writes the key or index of each result on the arrow to its output.
        color_by: fill nodes by "time", "bytes", "flops", "magnitude", "device_time", a field of their records such as
            "flops_backward", or a function of an `Op`.
        color_scale: "linear", "rank" or "log".
        size_by: let the area of nodes grow with any of these values, or with "dims", elements per batch item.
        size_scale: "sqrt" or "linear".
        size_cap: area of the largest value in areas of the smallest; None: 2, for "dims" 4.
        stack_by: columns: True or "auto" for one per pass of a loop, a field or a function for what a column shares.
        node_spec_fn: function (record, spec) with the last word on how each node is drawn; see `tl.viz.nodes`.
        collapsed_node_spec_fn: the same for modules drawn as one node.
        font_size: of node text, points.
        graph_attrs: Graphviz attributes of the whole graph.
        caption: an extra caption line.
        file_format: "pdf", "svg", "png", "jpg" or "dot".
        dpi: dots per inch of png.
        layout: "auto", "dot" or "rank": who places the nodes; rank is for very large graphs.
        fit_width: points that the figure will be wide in print: picks the direction, warns of text below 5 points.
        engine: "embedded", or "system" for an installed Graphviz.
        pdf_font: path of a TrueType font to embed in PDF.
        open_viewer: open the written file.

        Raises: TypeError for an unknown keyword; InvalidArgumentError with the option's code for a wrong value;
        UnknownNameError[module_not_found]; EvidenceError if the trace lacks what the view is about; EngineError if the
        figure cannot be laid out.
        """
        return self._draw(path, options)

    def _draw(
        self, path: str | Path | None, options: Mapping[str, object], layers: Sequence[SettingsLayer] = ()
    ) -> Drawing:
        from torchlens.drawings import draw_trace
        from torchlens.viz.subjects import record_of

        given: dict[str, object] = {**options}
        focus = given.get("module")
        if isinstance(focus, (Module, ModuleRecord)):
            given["module"] = focus.address
        return draw_trace(
            self._with_statistics(), path, given, layers=layers, record_of=record_of(self), source=self.data
        )
