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
    Code("draw_node_style_invalid", "InvalidArgumentError", "node_style= is not a style", "use default, profiling or attention"),
    Code("draw_show_buffers_invalid", "InvalidArgumentError", "show_buffers= is not a mode", "use meaningful, never or always"),
    Code("draw_module_invalid", "InvalidArgumentError", "module= is no address", "pass an address such as blocks.1, or trace.modules[address]"),
    Code("module_not_found", "UnknownNameError", "module= names no module of the model", "trace.modules lists the addresses"),
    Code("module_not_called", "InvalidArgumentError", "the module did not run in this forward pass", "focus on a module that ran"),
    Code("draw_show_exceptions_invalid", "InvalidArgumentError", "show_exceptions= is not a bool", "pass True or False"),
    Code("draw_show_nonfinite_invalid", "InvalidArgumentError", "show_nonfinite= is not a bool", "pass True or False"),
    Code("draw_show_orphans_invalid", "InvalidArgumentError", "show_orphans= is not a bool", "pass True or False"),
    Code("draw_show_legend_invalid", "InvalidArgumentError", "show_legend= is not a bool or None", "pass True, False or None"),
    Code("draw_show_redundant_args_invalid", "InvalidArgumentError", "show_redundant_args= is not a bool", "pass True or False"),
    Code("node_label_field_invalid", "InvalidArgumentError", "node_label_fields= is not a list of rows", "use the listed rows"),
    Code("draw_show_saved_for_backward_invalid", "InvalidArgumentError", "show_saved_for_backward= is not a bool", "pass True or False"),
    Code("draw_show_edge_shapes_invalid", "InvalidArgumentError", "show_edge_shapes= is not a bool", "pass True or False"),
    Code("draw_show_containers_invalid", "InvalidArgumentError", "show_containers= is not a mode", "use labels, or False"),
    Code("draw_node_spec_fn_invalid", "InvalidArgumentError", "node_spec_fn= is not a function", "pass a function of (record, spec), from Python"),
    Code("draw_collapsed_node_spec_fn_invalid", "InvalidArgumentError", "collapsed_node_spec_fn= is not a function", "pass a function of (record, spec), from Python"),
    Code("node_spec_failed", "InvalidArgumentError", "the function given as node_spec_fn= raised", "correct the function; it is told a record and a NodeSpec"),
    Code("node_spec_invalid", "InvalidArgumentError", "a node_spec_fn set something that cannot be drawn", "see tl.viz.NodeSpec"),
    Code("draw_font_size_invalid", "InvalidArgumentError", "font_size= is not a whole number of points", "pass a number of at least 1"),
    Code("draw_graph_attrs_invalid", "InvalidArgumentError", "graph_attrs= is not a mapping of attributes", 'pass {"splines": "ortho"} or the like'),
    Code("draw_caption_invalid", "InvalidArgumentError", "caption= is not text", "pass one line of text"),
    Code("draw_dpi_invalid", "InvalidArgumentError", "dpi= is not a whole number of at least 1", "pass dpi=150 or the like"),
    Code("draw_layout_invalid", "InvalidArgumentError", "layout= is not a layout", "use auto, dot or rank"),
    Code("draw_fit_width_invalid", "InvalidArgumentError", "fit_width= is not a whole number of points", "pass points, 72 to the inch, such as fit_width=345"),
    Code("draw_engine_invalid", "InvalidArgumentError", "engine= is not an engine", "use embedded or system"),
    Code("draw_pdf_font_invalid", "InvalidArgumentError", "pdf_font= is not a path", "pass the path of a TrueType font"),
    Code("draw_open_viewer_invalid", "InvalidArgumentError", "open_viewer= is not a bool", "pass True or False"),
    Code("draw_depth_invalid", "InvalidArgumentError", "depth= is not a whole number of at least 1", "pass depth=1 or more"),
    Code("collapse_mode_invalid", "InvalidArgumentError", "collapse= is not a mode", "use none, auto, max or a number from 0 to 1"),
    Code("collapse_level_invalid", "InvalidArgumentError", "collapse= is a number outside 0 to 1", "0 draws everything, 1 is max"),
    Code("fold_repeats_invalid", "InvalidArgumentError", "fold_repeats= is not a bool or None", "pass True, False or None"),
    Code("collapse_rules_invalid", "InvalidArgumentError", "collapse_rules= is not a list of rules, or a rule says something that is not allowed", 'write [{"class": "Attention*", "do": "fold"}] or the like'),
    Code("collapse_rule_unused", "TorchLensWarning", "a rule of collapse_rules= matches nothing in the trace", "correct its pattern, or leave the rule out"),
    Code("collapse_rule_test_kept", "TorchLensWarning", "an op that a rule would hide decides a branch and stays on the page", "leave it out of the rule's pattern"),
    Code("collapse_bridges_excessive", "InvalidArgumentError", "the ops hidden by collapse_rules= would leave more arrows than a page can hold", "hide fewer ops, or fold the modules around them"),
    Code("collapse_plan_unavailable", "UnavailableError", "this drawing has no collapse plan", 'draw the trace again with collapse="auto" and keep the trace'),
    Code("collapse_near_uncollapsed", "TorchLensWarning", "folding left most of the drawing as it is", "draw a part with module=, or repetition once with rolled=True"),
    Code("collapse_budget_fallback", "TorchLensWarning", "there is too much to plan: the simple planner folded the drawing", "draw a part with module=, or bound depth="),
    Code("collapse_watchdog_fallback", "TorchLensWarning", "the planner ran far past its estimate: the simple planner folded the drawing", "report the model; TORCHLENS_COLLAPSE_WATCHDOG=0 lets it run"),
    Code("collapse_pathological_skip", "TorchLensWarning", "there is far too much to plan: only the outermost modules are drawn", "draw a part with module="),
    Code("collapse_expansion_manifest", "TorchLensWarning", "the page is above the readable band; a manifest lists what can be opened", "draw an entry with its keywords"),
    Code("encoding_source_invalid", "InvalidArgumentError", "a channel names an unknown value source", "use one of the named sources, or a function of a record"),
    Code("encoding_scale_invalid", "InvalidArgumentError", "the name is no scale of this channel", "color_scale= takes linear, rank or log; size_scale= takes sqrt or linear"),
    Code("encoding_value_invalid", "InvalidArgumentError", "a channel's function gave something that is no number", "return a number, or None where there is none"),
    Code("encoding_callable_error", "InvalidArgumentError", "the function given to a channel raised", "correct the function; it is told one record of the trace"),
    Code("encoding_evidence_missing", "EvidenceError", "the trace lacks what the channel shows", "record the trace with that evidence"),
    Code("device_time_unavailable", "EvidenceError", "no profiler's session was joined with the trace", "record with torchlens.report.kernel_profile(model, x)"),
    Code("scale_requires_color_by", "InvalidArgumentError", "color_scale= was given without color_by=", "pass color_by= too"),
    Code("scale_requires_size_by", "InvalidArgumentError", "size_scale= or size_cap= was given without size_by=", "pass size_by= too"),
    Code("draw_size_cap_invalid", "InvalidArgumentError", "size_cap= is not a number of at least 1", "pass size_cap=4 or the like"),
    Code("size_by_rolled_varying", "InvalidArgumentError", "a rolled node has no single value to be sized by", "pass rolled=False, or a source that sums over passes: time, bytes, flops"),
    Code("stack_by_requires_unrolled", "InvalidArgumentError", "columns of passes were asked for in a rolled drawing", "pass rolled=False"),
    Code("stack_by_auto_underivable", "InvalidArgumentError", "no columns follow from the passes of this trace", "name what nodes of one column share: stack_by=\"pass_number\", or a function of a record"),
    # -- views and themes as data
    Code("color_invalid", "InvalidArgumentError", "the text is not a colour", "write #rrggbb or a CSS colour name"),
    Code("color_ramp_invalid", "InvalidArgumentError", "a ramp has fewer than two colours", "give at least two colours"),
    Code("color_vision_invalid", "InvalidArgumentError", "the name is no colour vision deficiency", "use protan, deutan or tritan"),
    Code("view_headline_evidence_missing", "EvidenceError", "the trace lacks what the view is about", "record the trace with that evidence"),
    Code("view_source_zero_coverage", "EvidenceError", "no op carries a value for the view's source", "leave view= unset"),
    Code("view_attention_subject_absent", "EvidenceError", "the view is about attention, and no repeated block of the trace holds any", 'leave view= unset, or pass view="overview"'),
    Code("view_single_pass_no_sequence", "EvidenceError", "the view is about passes, and nothing ran more than once", 'leave view= unset, or pass view="overview"'),
    Code("view_above_detail_budget", "EvidenceError", "the view draws every op, and there are too many", 'draw a part with module=, or pass collapse="auto"'),
    Code("view_budget_band_missed", "TorchLensWarning", "no folding of this model has as many nodes as the view wants", "choose collapse= or depth= yourself"),
    Code("surgery_evidence_missing", "EvidenceError", "the trace holds no edits", 'leave view= unset, or pass view="overview"'),
    Code("view_nonfinite_not_checked", "TorchLensWarning", "no values were kept or measured, so none could be checked for NaN and Inf", "record with tl.trace(..., capture=tl.options.CaptureOptions(out_stats=True)), or with save=\"all\""),
    Code("view_secondary_degraded", "TorchLensWarning", "the trace lacks what one of the wishes needs; it is left out", "record the trace with that evidence, or drop the option"),
    Code("config_invalid", "ConfigError", "a configuration file or override is wrong", "give that key another value"),
    Code("config_target_untrusted", "ConfigError", "a factory calls a name that is not trusted", "add trust=[package.*] to the command"),
    Code("manifest_missing", "ConfigError", "check=true finds no figures to compare with", "draw them once without check=true, and keep them"),
    Code("timings_stale", "EvidenceError", "the frozen times are not those of this model", "add refreeze=true to measure and freeze them again"),
    Code("sweep_axis_unused", "TorchLensWarning", "every figure of the set makes its own choice of what is swept", "leave the axis out, or let the figures leave that key to the run"),
    Code("sweep_jobs_equal", "ConfigError", "two jobs of the sweep would be the same", "list each value once"),
    Code("figure_path_conflict", "ConfigError", "two figures write the same file", "give one of them another path"),
    Code("config_name_unknown", "UnknownNameError", "a configuration names something that does not exist", "use one of the listed names"),
    # -- output
    Code("file_format_invalid", "InvalidArgumentError", "the file format is not one the engine writes", "use one of the listed formats"),
    Code("file_format_conflict", "InvalidArgumentError", "the path's extension and file_format= disagree", "give one of them"),
    Code("output_path_invalid", "InvalidArgumentError", "the path's folder does not exist or cannot be written", "make the folder first"),
    Code("render_engine_unavailable", "EngineError", "the layout engine is not installed", "install it, or use the other engine"),
    Code("render_engine_failed", "EngineError", "the layout engine refused the figure", "report the DOT text"),
    Code("render_engine_timeout", "EngineError", "the layout engine ran past its time limit", 'draw fewer nodes with collapse="auto" or depth=, or pass layout="rank"'),
    Code("render_engine_warning", "TorchLensWarning", "the layout engine complained about the figure", "look at the picture"),
    Code("pdf_font_invalid", "InvalidArgumentError", "pdf_font= is not a TrueType font file", "pass the path of a .ttf file with TrueType outlines"),
    Code("graph_too_large", "InvalidArgumentError", "the figure has more nodes than the layout can place", 'draw fewer nodes with collapse="auto" or depth='),
    Code("encoding_requires_dot_layout", "InvalidArgumentError", "the rank layout was asked for with a channel", "leave layout= unset, or draw without the channel"),
    Code("figure_text_small", "TorchLensWarning", "text is too small to read when the figure is printed at fit_width=", 'draw fewer nodes with collapse="auto" or depth=, or print it wider'),
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
    Code("model_checkpoint_invalid", "InputError", "the file of the weights cannot be read, or does not fit the model", "give a state dict that torch.save or safetensors wrote for this model"),
    Code("tokenizer_unavailable", "UnavailableError", "a text needs the tokenizer of the model, and there is none", "add tokenizer: {_target_: ...} to the model's file, or pass the ids with input=tensor or input=shape"),
    Code("model_run_failed", "InputError", "the model's forward raised", "check the input's shape and dtype, or run the model by hand"),
    Code("input_file_unreadable", "InputError", "the file of the input cannot be read", "give a .pt file of tensors or a .npy file"),
    Code("trace_input_missing", "InputError", "the forward needs arguments that were not given", "pass the inputs"),
    Code("batchnorm_train_stats_mutated", "TorchLensWarning", "recording in training mode updated running statistics, as a plain call does", "call model.eval() before recording if they are to stay"),
    Code("capture_option_invalid", "InvalidArgumentError", "an option of the recording has a value that is not allowed", "see tl.options.CaptureOptions"),
    Code("capture_option_unknown", "UnknownNameError", "capture= names an option that does not exist", "see tl.options.CaptureOptions"),
    Code("save_name_unmatched", "TorchLensWarning", "save= names something of which no value was kept", "use the labels that list(trace) shows, or module addresses"),
    Code("save_predicate_failed", "InvalidArgumentError", "the predicate given as save= raised", "correct the predicate; it is told an OpFacts"),
    Code("warmup_state_pending", "InputError", "warm-up runs would give lazy state its shape for good", "run the model once by hand before recording, or leave warmup at 0"),
    Code("trace_save_invalid", "InvalidArgumentError", "save= is not all, none, labels or a predicate", 'pass save="all" or save="none"'),
    Code("input_rung_conflict", "InputError", "both a real input and input_shape= were given", "give exactly one of them"),
    Code("input_shape_invalid", "InputError", "input_shape= is not a shape of positive whole numbers", "pass a tuple such as (1, 3, 224, 224)"),
    Code("input_shape_unknown_binding", "InputError", "input_shape= names a keyword that forward does not take", "use the names of forward's parameters"),
    Code("input_dtype_ambiguous", "InputError", "the model does not tell whether its input holds floats or ids", "pass the real input"),
    Code("lazy_uninitialized", "CaptureError", "the model has buffers without a shape", "run the model once under torch.no_grad(), then record it"),
    Code("trace_nested", "CaptureError", "a trace of this thread is already running", "finish the outer trace first"),
    Code("trace_inconsistent", "CaptureError", "the recorded trace breaks a structural rule", "report the model"),
    # -- selections, annotations and pictures
    Code("selector_no_match", "UnknownNameError", "a selector matches nothing in the trace", "use one of the nearest names"),
    Code("annotation_invalid", "InvalidArgumentError", "the data of an annotation is not plain data", "use numbers, texts, lists and mappings with text keys"),
    Code("image_unreadable", "InvalidArgumentError", "the picture cannot be read", "pass the path of an image file, or a PIL image"),
    Code("batch_render_invalid", "InvalidArgumentError", "batch_render= is not a way to show a batch", "use auto, all, first, first_n:k or shape_only"),
    Code("feature_maps_invalid", "InvalidArgumentError", "the value is no stack of feature maps", "pass the label of an op whose output is (N, C, H, W) or (N, L, D)"),
    # -- saved traces
    Code("load_file_missing", "LoadError", "there is no such file, or it cannot be opened", "give the path that trace.save wrote"),
    Code("load_file_invalid", "LoadError", "the file holds no trace, or only a part of one", "save the trace again"),
    Code("load_schema_unknown", "LoadError", "the file was written by another version of torchlens", "install the version that wrote it, or record and save again"),
    Code("save_incomplete", "TorchLensWarning", "a saved trace lacks what its file cannot hold", "keep plain values and dense tensors only"),
    Code("save_too_large", "InvalidArgumentError", "the trace has more separate values than a file can list", 'record with save="none", or keep the values of fewer ops'),
    # -- registries
    Code("registry_name_taken", "InvalidArgumentError", "a registry has this name already", "register the new thing under another name"),
)

CODES: dict[str, Code] = {row.name: row for row in _ROWS}
