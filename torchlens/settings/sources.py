"""The names a channel may be given: builtin values, and fields of the records. What number each is, is the scene's.

A function of a record is a source too, from Python only; it has no name here.
"""

from __future__ import annotations

from typing import Literal

Builtin = Literal["time", "bytes", "flops", "magnitude", "grad_norm", "device_time"]
# Fields of the records that hold one number per node.
NumberField = Literal[
    "func_duration", "activation_memory", "flops_forward", "flops_backward", "flops_total", "macs_forward",
    "transformed_activation_memory", "autograd_memory", "num_autograd_tensors", "total_func_duration",
    "total_activation_memory", "total_flops_forward", "pass_number", "num_passes", "step", "n",
]  # fmt: skip
ColorSource = Literal[Builtin, NumberField]
SizeSource = Literal[Builtin, "dims", NumberField]
# `auto` derives the columns from the passes; the others are values that nodes of one column share.
StackSource = Literal[
    True, "auto", "pass_number", "num_passes", "step", "n", "type", "func_name", "layer_label", "dtype", "device"
]
# What nodes of one column share where they are derived from the passes.
PASSES = "pass_number"
