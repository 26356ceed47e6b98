"""The op family table: one row per family says everything the package knows of its functions.

A row gives the function names, the arguments worth showing with their hidden defaults, the FLOP formula, the backward
factor, which arguments repeat a dimension, and whether the operands may change places. A new function is a name in a
row, a new family a new row; no code elsewhere asks for a function by name. Knows no torch: names are text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal


@dataclass(frozen=True, slots=True)
class Same:
    """Hidden default of an argument: the value of another one."""

    argument: str


ALWAYS = object()
"""Marks an argument without a hidden default: shown whenever it is a plain value."""

Repeats = Literal["input last", "input channel", "output last", "output channel", "output trailing"]
"""Which dimension an argument repeats: of the one tensor that flows in, or of the output."""


@dataclass(frozen=True, slots=True)
class Family:
    """One row.

    functions: bare names after `base_name`. shown: argument -> default at which it is hidden; None = show every plain
    argument that differs from the function's own default. derive: name of the rule in `arguments.DERIVED` that adds
    arguments which are no arguments of the call. formula: name of a rule in `flops.FORMULAS`, None = unknown; per: its
    factor per element. backward: FLOPs of the backward over those of the forward. redundant: argument -> what it
    repeats. commutative: operands may change places, so that arrows need no argument labels.
    """

    name: str
    functions: tuple[str, ...]
    shown: Mapping[str, object] | None
    formula: str | None = None
    per: int = 1
    backward: float = 1.0
    derive: str = ""
    redundant: Mapping[str, Repeats] = field(default_factory=dict[str, Repeats])
    commutative: bool = False


_NOTHING: dict[str, object] = {}
_DIM = {"dim": ALWAYS}
_REDUCED = {"dim": None, "keepdim": False, "dtype": None}
_SPREAD = {"dim": None, "unbiased": True, "correction": 1, "keepdim": False}
_SCALARS = {"input": ALWAYS, "other": ALWAYS, "alpha": 1, "rounding_mode": None}
_KERNEL = {"in_channels": ALWAYS, "out_channels": ALWAYS, "kernel_size": ALWAYS, "stride": 1, "padding": 0}
_WINDOW = {"kernel_size": ALWAYS, "stride": Same("kernel_size"), "padding": 0, "dilation": 1, "ceil_mode": False}
_AVERAGED = {"kernel_size": ALWAYS, "stride": Same("kernel_size"), "padding": 0, "ceil_mode": False}
_NORMALIZED = {"num_features": ALWAYS, "eps": 1e-5, "momentum": 0.1}
_RECURRENT = {"num_layers": 1, "bidirectional": False, "batch_first": False, "dropout": 0.0}
_LOSS = {"reduction": "mean", "ignore_index": -100, "label_smoothing": 0.0, "beta": 1.0, "delta": 1.0}
_CHANNELS: dict[str, Repeats] = {"in_channels": "input channel", "out_channels": "output channel"}
_TRAILING: dict[str, Repeats] = {"normalized_shape": "output trailing"}
_FEATURES: dict[str, Repeats] = {"in_features": "input last", "out_features": "output last"}


def _row(
    name: str,
    functions: str,
    shown: Mapping[str, object] | None = None,
    formula: str | None = None,
    per: int = 1,
    backward: float = 1.0,
    derive: str = "",
    redundant: Mapping[str, Repeats] | None = None,
    commutative: bool = False,
) -> Family:
    return Family(name, tuple(functions.split()), shown, formula, per, backward, derive, redundant or {}, commutative)


# fmt: off
FAMILIES: tuple[Family, ...] = (
    # -- products: a multiply-add counts as 2
    _row("linear", "linear",
         {"in_features": ALWAYS, "out_features": ALWAYS}, "linear", backward=2, derive="linear", redundant=_FEATURES),
    _row("bilinear", "bilinear", _NOTHING, "bilinear", backward=2),
    _row("matmul", "matmul mm bmm mv dot vdot inner linalg_matmul", _NOTHING, "matmul", backward=2),
    _row("reflected matmul", "rmatmul", _NOTHING, "reflected matmul", backward=2),
    _row("added matmul", "addmm addmv addbmm baddbmm", {"beta": 1, "alpha": 1}, "added matmul", backward=2),
    _row("tensordot", "tensordot", {"dims": ALWAYS}, "tensordot", backward=2),
    _row("einsum", "einsum", {"equation": ALWAYS}, "einsum", backward=2),
    _row("outer product", "outer ger", _NOTHING, "per output", 1, 2),
    _row("convolution", "conv1d conv2d conv3d",
         {**_KERNEL, "dilation": 1, "groups": 1},
         "convolution", backward=2, derive="convolution", redundant=_CHANNELS),
    _row("transposed convolution", "conv_transpose1d conv_transpose2d conv_transpose3d",
         {**_KERNEL, "output_padding": 0, "dilation": 1, "groups": 1},
         "transposed convolution", backward=2, derive="transposed convolution", redundant=_CHANNELS),
    _row("attention", "scaled_dot_product_attention",
         {"dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": False},
         "attention", backward=2.5, derive="attention"),
    _row("multi-head attention", "multi_head_attention_forward",
         {"embed_dim": ALWAYS, "num_heads": ALWAYS, "dropout_p": 0.0},
         derive="multi-head attention", redundant={"embed_dim": "output last"}),
    _row("recurrent network", "lstm gru rnn_tanh rnn_relu", _RECURRENT, "recurrent", backward=2, derive="recurrent"),
    _row("recurrent cell", "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell", _NOTHING, "recurrent cell", backward=2),
    # -- normalization and regularization
    _row("batch norm", "batch_norm instance_norm",
         _NORMALIZED, "per output", 5, 2.5, "features", {"num_features": "output channel"}),
    _row("layer norm", "layer_norm",
         {"normalized_shape": ALWAYS, "eps": 1e-5}, "per output", 5, 2.5, redundant=_TRAILING),
    # No mean to subtract: square, sum, scale, weight.
    _row("rms norm", "rms_norm",
         {"normalized_shape": ALWAYS, "eps": None}, "per output", 4, 2.5),
    _row("group norm", "group_norm", {"num_groups": ALWAYS, "eps": 1e-5}, "per output", 5, 2.5),
    # A norm of the direction and a scaling of it.
    _row("weight norm", "_weight_norm", {"dim": 0}, "per output", 3, 2.5),
    _row("dropout", "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout",
         {"p": ALWAYS, "training": True}, "dropout", 2),
    _row("softmax", "softmax special_softmax", {"dim": ALWAYS, "dtype": None}, "per output", 5, 2),
    _row("log softmax", "log_softmax special_log_softmax", {"dim": ALWAYS, "dtype": None}, "per output", 6, 2),
    # -- windows
    _row("max pool",
         "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
         "max_pool3d_with_indices",
         _WINDOW, "pool"),
    _row("average pool", "avg_pool1d avg_pool2d avg_pool3d", _AVERAGED, "pool"),
    _row("adaptive pool",
         "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
         "adaptive_max_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
         "adaptive_max_pool3d_with_indices",
         {"output_size": ALWAYS}, "per input"),
    _row("unpool", "max_unpool1d max_unpool2d max_unpool3d", _AVERAGED, "free"),
    _row("interpolate", "interpolate",
         {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": None, "antialias": False},
         "per output", 4),
    _row("upsample",
         "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d "
         "upsample_bicubic2d upsample_trilinear3d",
         {"output_size": None, "scale_factors": None, "align_corners": False}, "per output", 4),
    _row("grid sample", "grid_sample grid_sampler",
         {"mode": "bilinear", "padding_mode": "zeros", "align_corners": None}, "per output", 4),
    _row("region", "roi_align roi_pool ps_roi_align ps_roi_pool",
         {"output_size": ALWAYS, "pooled_height": ALWAYS, "pooled_width": ALWAYS, "spatial_scale": 1.0,
          "sampling_ratio": -1, "aligned": False}),
    _row("unfold", "unfold im2col",
         {"kernel_size": ALWAYS, "stride": 1, "padding": 0, "dilation": 1,
          "dimension": ALWAYS, "size": ALWAYS, "step": ALWAYS}, "free"),
    _row("padding", "pad constant_pad_nd", {"pad": ALWAYS, "mode": "constant", "value": 0}, "free"),
    _row("pixel shuffle", "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle",
         {"upscale_factor": ALWAYS, "downscale_factor": ALWAYS, "groups": ALWAYS}, "free"),
    # -- tables
    _row("embedding", "embedding",
         {"num_embeddings": ALWAYS, "embedding_dim": ALWAYS, "padding_idx": -1, "max_norm": None}, "free",
         derive="embedding", redundant={"embedding_dim": "output last"}),
    _row("embedding bag", "embedding_bag",
         {"num_embeddings": ALWAYS, "embedding_dim": ALWAYS, "mode": "mean", "padding_idx": -1, "max_norm": None},
         "embedding bag", derive="embedding"),
    _row("one hot", "one_hot", {"num_classes": -1}, "free"),
    # -- reductions
    _row("reduction", "sum nansum mean nanmean prod amax amin aminmax max min argmax argmin any all count_nonzero",
         _REDUCED, "reduction"),
    _row("spread", "var std var_mean std_mean", _SPREAD, "per input", 3),
    _row("norm", "norm", {"p": "fro", **_REDUCED}, "per input", 2),
    _row("vector norm", "linalg_vector_norm linalg_norm", {"ord": 2, **_REDUCED}, "per input", 2),
    _row("cumulative", "cumsum cumprod cummax cummin logcumsumexp", {"dim": ALWAYS, "dtype": None}, "per output"),
    _row("sort", "sort argsort msort", {"dim": -1, "descending": False, "stable": False}, "sort"),
    _row("top k", "topk", {"k": ALWAYS, "dim": -1, "largest": True, "sorted": True}, "sort"),
    # -- losses
    _row("cross entropy", "cross_entropy cross_entropy_loss", _LOSS, "per input", 6),
    _row("distance loss", "mse_loss l1_loss huber_loss smooth_l1_loss", _LOSS, "per input", 3),
    _row("binary cross entropy", "binary_cross_entropy binary_cross_entropy_with_logits", _LOSS, "per input", 10),
    # -- element-wise, by cost per output element
    _row("symmetric arithmetic", "add mul multiply", _SCALARS, "per output", commutative=True),
    _row("symmetric comparison", "eq ne not_equal maximum minimum logical_and logical_or bitwise_and bitwise_or",
         _SCALARS, "per output", commutative=True),
    _row("arithmetic",
         "sub subtract rsub div divide true_divide rdiv floor_divide rfloordiv remainder rmod fmod "
         "bitwise_left_shift bitwise_right_shift rlshift rrshift",
         _SCALARS, "per output"),
    _row("comparison",
         "gt greater ge greater_equal lt less le less_equal logical_xor bitwise_xor fmax fmin heaviside isclose",
         _SCALARS, "per output"),
    _row("unary",
         "neg negative positive abs absolute sign sgn floor ceil trunc fix frac reciprocal square relu relu6 "
         "logical_not bitwise_not isnan isinf isfinite isposinf isneginf nan_to_num deg2rad rad2deg",
         {"nan": 0.0, "posinf": None, "neginf": None}, "per output"),
    _row("rounding", "round", {"decimals": 0}, "per output"),
    _row("selection", "where masked_fill", {"input": ALWAYS, "other": ALWAYS, "value": ALWAYS}, "per output"),
    _row("clamp", "clamp clip clamp_min clamp_max", {"min": None, "max": None}, "per output"),
    _row("hardtanh", "hardtanh", {"min_val": -1, "max_val": 1}, "per output"),
    _row("threshold", "threshold", {"threshold": ALWAYS, "value": ALWAYS}, "per output"),
    # Compare and multiply.
    _row("leaky relu", "leaky_relu", {"negative_slope": 0.01}, "per output", 2),
    _row("parametric relu", "prelu", _NOTHING, "per output", 2),
    _row("shrink", "hardshrink softshrink", {"lambd": 0.5}, "per output", 2),
    _row("power", "pow float_power rpow", {"input": ALWAYS, "exponent": ALWAYS, "other": ALWAYS}, "per output", 2),
    _row("root", "sqrt rsqrt", _NOTHING, "per output", 2),
    _row("fused arithmetic", "lerp addcmul addcdiv", {"weight": ALWAYS, "value": 1}, "per output", 3),
    _row("hard activation", "hardsigmoid softsign", _NOTHING, "per output", 3),
    _row("hardswish", "hardswish", _NOTHING, "per output", 4),
    _row("sigmoid", "sigmoid special_expit", _NOTHING, "per output", 4, 1.5),
    # A sigmoid and a product.
    _row("gated linear unit", "glu", {"dim": -1}, "per output", 5),
    _row("silu", "silu", _NOTHING, "per output", 5, 1.5),
    _row("log sigmoid", "logsigmoid log_sigmoid", _NOTHING, "per output", 5),
    _row("tanh", "tanh", _NOTHING, "per output", 6, 1.5),
    _row("tanhshrink", "tanhshrink", _NOTHING, "per output", 7),
    _row("transcendental",
         "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh asinh acosh atanh "
         "arcsin arccos arctan arctan2 arcsinh arccosh arctanh erf erfc "
         "special_erf special_erfc special_exp2 special_expm1 special_log1p",
         {"other": ALWAYS}, "per output", 8),
    _row("elu", "elu", {"alpha": 1.0}, "per output", 9, 1.5),
    _row("celu", "celu", {"alpha": 1.0}, "per output", 9),
    _row("softplus", "softplus", {"beta": 1, "threshold": 20}, "per output", 9),
    _row("selu", "selu", _NOTHING, "per output", 10),
    _row("gelu", "gelu", {"approximate": "none"}, "per output", 14, 1.5),
    # softplus, tanh and a product.
    _row("mish", "mish", _NOTHING, "per output", 16),
    # -- no arithmetic: views, indexing, copies
    _row("index", "getitem setitem", {"index": ALWAYS, "value": ALWAYS}, "free", derive="index"),
    _row("reshape",
         "view reshape view_as reshape_as ravel expand expand_as broadcast_to broadcast_tensors repeat tile "
         "as_strided atleast_1d atleast_2d atleast_3d",
         {"dtype": None}, "free"),
    _row("flatten", "flatten", {"start_dim": 0, "end_dim": -1}, "free"),
    _row("unflatten", "unflatten", _DIM, "free"),
    _row("squeeze", "squeeze unsqueeze", _DIM, "free"),
    _row("permute", "permute", {"dims": ALWAYS}, "free", derive="permute"),
    _row("transpose", "transpose swapdims swapaxes", {"dim0": ALWAYS, "dim1": ALWAYS}, "free"),
    _row("move axis", "movedim moveaxis", {"source": ALWAYS, "destination": ALWAYS}, "free"),
    _row("matrix transpose", "t T mT H mH adjoint", _NOTHING, "free"),
    _row("concatenate", "cat concat concatenate stack", {"dim": 0}, "free"),
    _row("stack", "hstack vstack dstack column_stack row_stack block_diag", _NOTHING, "free"),
    _row("chunk", "chunk unsafe_chunk", {"chunks": ALWAYS, "dim": 0}, "free"),
    _row("split", "split split_with_sizes unsafe_split", {"split_size": ALWAYS, "dim": 0}, "free"),
    _row("tensor split", "tensor_split hsplit vsplit dsplit",
         {"indices": ALWAYS, "sections": ALWAYS, "indices_or_sections": ALWAYS, "dim": 0}, "free"),
    _row("unbind", "unbind", {"dim": 0}, "free"),
    _row("slice", "narrow narrow_copy select",
         {"dim": ALWAYS, "index": ALWAYS, "start": ALWAYS, "length": ALWAYS}, "free"),
    _row("gather", "gather take take_along_dim index_select masked_select nonzero argwhere", _DIM, "free"),
    _row("scatter", "scatter index_copy index_fill index_put masked_scatter",
         {"dim": ALWAYS, "value": ALWAYS, "reduce": None}, "free"),
    _row("diagonal", "tril triu diag diag_embed diagonal",
         {"diagonal": 0, "offset": 0, "dim1": None, "dim2": None}, "free"),
    _row("roll", "roll", {"shifts": ALWAYS, "dims": None}, "free"),
    _row("flip", "flip rot90", {"k": 1, "dims": ALWAYS}, "free"),
    _row("mirror", "fliplr flipud", _NOTHING, "free"),
    _row("repeat", "repeat_interleave", {"repeats": ALWAYS, "dim": None}, "free"),
    _row("grid", "meshgrid", {"indexing": "ij"}, "free"),
    _row("combination", "cartesian_prod combinations", {"r": 2, "with_replacement": False}, "free"),
    _row("complex", "real imag conj resolve_conj resolve_neg view_as_real view_as_complex complex", _NOTHING, "free"),
    _row("cast", "to type type_as",
         {"dtype": ALWAYS, "device": ALWAYS, "memory_format": "preserve_format"}, "free", derive="cast"),
    _row("named cast", "float double half bfloat16 cfloat cdouble int long short char byte bool cpu cuda",
         _NOTHING, "free"),
    _row("copy", "clone detach copy identity requires_grad data set resize zero",
         {"memory_format": "preserve_format"}, "free"),
    _row("contiguous", "contiguous", {"memory_format": "contiguous_format"}, "free"),
    _row("fill", "fill full full_like new_full", {"value": ALWAYS, "fill_value": ALWAYS}, "free"),
    _row("range", "arange range linspace logspace", {"start": 0, "end": ALWAYS, "step": 1, "base": 10.0}, "free"),
    _row("factory",
         "tensor as_tensor scalar_tensor asarray new_tensor zeros ones empty eye zeros_like ones_like empty_like "
         "new_zeros new_ones new_empty tril_indices triu_indices empty_strided new_empty_strided",
         _NOTHING, "free"),
    _row("random factory", "rand randn rand_like randn_like randperm", _NOTHING, "free"),
    _row("random numbers", "randint randint_like normal uniform random",
         {"low": 0, "high": ALWAYS, "mean": 0.0, "std": 1.0, "from": 0.0, "to": 1.0}, "free"),
)
# fmt: on

# What stands between the double underscores -> function name. Reflected forms whose operands may not change places
# keep a name of their own.
_OPERATORS = {
    "iadd": "add", "radd": "add", "isub": "sub", "imul": "mul", "rmul": "mul",
    "truediv": "div", "itruediv": "div", "idiv": "div", "rtruediv": "rdiv",
    "floordiv": "floor_divide", "ifloordiv": "floor_divide", "mod": "remainder", "imod": "remainder",
    "ipow": "pow", "imatmul": "matmul",
    "and": "bitwise_and", "iand": "bitwise_and", "rand": "bitwise_and",
    "or": "bitwise_or", "ior": "bitwise_or", "ror": "bitwise_or",
    "xor": "bitwise_xor", "ixor": "bitwise_xor", "rxor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "ilshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "irshift": "bitwise_right_shift",
    "invert": "bitwise_not", "pos": "positive",
}  # fmt: skip


@cache
def base_name(func: str) -> str:
    """The name under which a function stands in the table: without overload, dunder marks and in-place mark.

    base_name("relu_") == "relu"; base_name("__iadd__") == base_name("add_") == "add"; base_name("mm.default") == "mm".
    """
    name = func.partition(".")[0]
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        return _OPERATORS.get(name[2:-2], name[2:-2])
    return name.rstrip("_") or name


_BY_FUNCTION = {function: family for family in FAMILIES for function in family.functions}


@cache
def family_of(func: str) -> Family | None:
    """The row of a function, whatever its spelling; None if the table does not know it."""
    return _BY_FUNCTION.get(base_name(func))


def is_commutative(func: str) -> bool:
    """Whether the operands may change places without changing the result."""
    family = family_of(func)
    return family is not None and family.commutative
