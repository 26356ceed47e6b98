"""Every error and warning code of the package, one row each.

A code reads `<subject>_<problem>` and is permanent once released. `error`, `fail` and `warn` in `errors.py` refuse a
code without a row here, so this table is complete by construction.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One row: the error class that carries it, what it means, and what usually helps."""

    name: str
    kind: str
    summary: str
    remedy: str
    since: str = "0.1"


_ROWS = (
    # -- drawing options
    Code("draw_view_invalid", "InvalidArgumentError", "view= names no view", "pass one of the named views, or leave view= unset"),
    Code("visualization_theme_invalid", "InvalidArgumentError", "theme= names no theme", "pass one of the named themes"),
    Code("visualization_direction_invalid", "InvalidArgumentError", "direction= is not a flow direction", "use bottomup, topdown, leftright or rightleft"),
    Code("draw_rolled_invalid", "InvalidArgumentError", "rolled= is not a bool", "pass rolled=True or rolled=False"),
    Code("draw_node_style_invalid", "InvalidArgumentError", "node_style= is not a style", "use default or profiling"),
    Code("draw_show_buffers_invalid", "InvalidArgumentError", "show_buffers= is not a mode", "use meaningful, never or always"),
    Code("draw_show_legend_invalid", "InvalidArgumentError", "show_legend= is not a bool or None", "pass True, False or None"),
    Code("draw_show_redundant_args_invalid", "InvalidArgumentError", "show_redundant_args= is not a bool", "pass True or False"),
    Code("draw_font_size_invalid", "InvalidArgumentError", "font_size= is not a whole number of points", "pass a number of at least 1"),
    Code("draw_graph_attrs_invalid", "InvalidArgumentError", "graph_attrs= is not a mapping of attributes", 'pass {"splines": "ortho"} or the like'),
    Code("draw_caption_invalid", "InvalidArgumentError", "caption= is not text", "pass one line of text"),
    Code("draw_dpi_invalid", "InvalidArgumentError", "dpi= is not a whole number of at least 1", "pass dpi=150 or the like"),
    Code("draw_engine_invalid", "InvalidArgumentError", "engine= is not an engine", "use embedded or system"),
    Code("draw_pdf_font_invalid", "InvalidArgumentError", "pdf_font= is not a path", "pass the path of a TrueType font"),
    Code("draw_open_viewer_invalid", "InvalidArgumentError", "open_viewer= is not a bool", "pass True or False"),
    Code("draw_depth_invalid", "InvalidArgumentError", "depth= is not a whole number of at least 1", "pass depth=1 or more"),
    Code("collapse_mode_invalid", "InvalidArgumentError", "collapse= is not a mode", 'pass collapse="none"'),
    Code("collapse_unavailable", "UnavailableError", "this collapse mode is not available yet", 'pass collapse="none" or depth='),
    Code("encoding_source_invalid", "InvalidArgumentError", "a channel names an unknown value source", "use one of the named sources"),
    Code("encoding_scale_invalid", "InvalidArgumentError", "color_scale= is not a scale", "use linear or rank"),
    Code("scale_requires_color_by", "InvalidArgumentError", "color_scale= was given without color_by=", "pass color_by= too"),
    # -- views and themes as data
    Code("color_invalid", "InvalidArgumentError", "the text is not a colour", "write #rrggbb or a CSS colour name"),
    Code("color_ramp_invalid", "InvalidArgumentError", "a ramp has fewer than two colours", "give at least two colours"),
    Code("color_vision_invalid", "InvalidArgumentError", "the name is no colour vision deficiency", "use protan, deutan or tritan"),
    Code("view_headline_evidence_missing", "EvidenceError", "the trace lacks what the view is about", "record the trace with that evidence"),
    Code("view_source_zero_coverage", "EvidenceError", "no op carries a value for the view's source", "leave view= unset"),
    Code("config_invalid", "ConfigError", "a configuration file or override is wrong", "give that key another value"),
    Code("config_target_untrusted", "ConfigError", "a factory calls a name that is not trusted", "add trust=[package.*] to the command"),
    Code("figure_path_conflict", "ConfigError", "two figures write the same file", "give one of them another path"),
    Code("config_name_unknown", "UnknownNameError", "a configuration names something that does not exist", "use one of the listed names"),
    # -- output
    Code("file_format_invalid", "InvalidArgumentError", "the file format is not one the engine writes", "use one of the listed formats"),
    Code("file_format_conflict", "InvalidArgumentError", "the path's extension and file_format= disagree", "give one of them"),
    Code("output_path_invalid", "InvalidArgumentError", "the path's folder does not exist or cannot be written", "make the folder first"),
    Code("render_engine_unavailable", "EngineError", "the layout engine is not installed", "install it, or use the other engine"),
    Code("render_engine_failed", "EngineError", "the layout engine refused the figure", "report the DOT text"),
    Code("render_engine_timeout", "EngineError", "the layout engine ran past its time limit", "draw fewer nodes, with depth= for example"),
    Code("render_engine_warning", "TorchLensWarning", "the layout engine complained about the figure", "look at the picture"),
    Code("pdf_font_invalid", "InvalidArgumentError", "pdf_font= is not a TrueType font file", "pass the path of a .ttf file with TrueType outlines"),
    Code("graph_too_large", "InvalidArgumentError", "the figure has more nodes than the layout can place", "use depth= to draw fewer nodes"),
    Code("figure_unreadable", "TorchLensWarning", "the raster figure is too large to view", "write svg or pdf, or use a smaller dpi"),
    Code("pdf_glyph_missing", "TorchLensWarning", "the PDF font lacks some characters", "pass pdf_font= with a TrueType font"),
    # -- traces
    Code("label_not_found", "UnknownNameError", "nothing in the trace bears this name", "use one of the nearest names"),
    Code("layer_pass_ambiguous", "InvalidArgumentError", "the field differs between the passes of this layer", "name one pass, as in relu_1_2:1"),
    Code("payload_unavailable", "UnavailableError", "the value of this op was not kept", 'record with save="all"'),
    Code("payload_overwritten", "UnavailableError", "the value of this op was overwritten later", "clone the tensor in the model, or read the overwriting op"),
    Code("trace_model_invalid", "InputError", "the first argument is not an nn.Module", "pass a torch.nn.Module"),
    Code("model_package_missing", "UnavailableError", "the model needs a package that is not installed", "install it"),
    Code("model_target_unknown", "UnknownNameError", "a factory names something that does not exist", "correct the _target_"),
    Code("model_build_failed", "InputError", "the factory of the model raised", "correct the arguments in the model's file"),
    Code("model_run_failed", "InputError", "the model's forward raised", "check the input's shape and dtype, or run the model by hand"),
    Code("input_file_unreadable", "InputError", "the file of the input cannot be read", "give a .pt file of tensors or a .npy file"),
    Code("trace_input_missing", "InputError", "the forward needs arguments that were not given", "pass the inputs"),
    Code("trace_save_invalid", "InvalidArgumentError", "save= is not all, none, labels or a predicate", 'pass save="all" or save="none"'),
    Code("input_rung_conflict", "InputError", "both a real input and input_shape= were given", "give exactly one of them"),
    Code("input_shape_invalid", "InputError", "input_shape= is not a shape of positive whole numbers", "pass a tuple such as (1, 3, 224, 224)"),
    Code("input_shape_unknown_binding", "InputError", "input_shape= names a keyword that forward does not take", "use the names of forward's parameters"),
    Code("input_dtype_ambiguous", "InputError", "the model does not tell whether its input holds floats or ids", "pass the real input"),
    Code("trace_nested", "CaptureError", "a trace of this thread is already running", "finish the outer trace first"),
    Code("trace_inconsistent", "CaptureError", "the recorded trace breaks a structural rule", "report the model"),
    # -- registries
    Code("registry_name_taken", "InvalidArgumentError", "a registry has this name already", "register the new thing under another name"),
)

CODES: dict[str, Code] = {row.name: row for row in _ROWS}
