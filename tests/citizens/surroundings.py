"""Scripted and compiled parts, threads, modes of the user, higher-order and custom operators."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.citizens.harness import graph, linked


# -- TorchScript
@torch.jit.script
def scripted(x, y):
    return torch.sin(x) * y, x.sum()


@graph("scripted(x, x)", "add(scripted[0], scripted[1])", "out(add)")
def script_function(m, x):
    a, b = scripted(x, x)
    return a + b


@torch.jit.script
def scripted_write(x):
    x.mul_(2)
    return x


@graph("add(x)", "scripted_write(add)", "sub(scripted_write)", "out(sub)")
def script_function_that_writes(m, x):
    y = x + 1
    scripted_write(y)
    return y - 1


def scripted_child(model):
    model.script = torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))


@graph("script(x; script.0.weight, script.0.bias)", "add(script)", "out(add)", prepare=scripted_child)
def script_module(m, x):
    return m.script(x) + 1


def scripted_norm(model):
    model.script = torch.jit.script(nn.BatchNorm1d(4))


@linked(prepare=scripted_norm, train=True)
def script_module_that_updates_statistics(m, x):
    return m.script(x)


def traced_child(model):
    model.script = torch.jit.trace(nn.Linear(4, 4), torch.ones(2, 4))


@linked(prepare=traced_child)
def traced_module(m, x):
    return m.script(x) + 1


@linked(disclosed="fork")
def forked_and_waited(m, x):
    return torch.jit.wait(torch.jit.fork(lambda y: y * 2, x)) + 1


# -- torch.fx
def graph_module(model):
    model.traced = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))


@graph("linear(x; traced.0.weight, traced.0.bias)", "relu(linear)", "out(relu)", prepare=graph_module)
def symbolic_graph(m, x):
    return m.traced(x)


# -- threads: a function mode is of one thread, so what another one computes can only be disclosed.
@linked(disclosed="thread")
def branch_in_a_thread(m, x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: x * 2).result() + 1


@linked(disclosed="thread")
def modules_in_threads(m, x):
    with ThreadPoolExecutor(2) as pool:
        return torch.cat(list(pool.map(lambda module: module(x), [m.fc, m.out])))


# -- modes of the user
class Scales(TorchFunctionMode):
    """Replaces one function by others."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.relu:
            return torch.tanh(args[0]) * 100
        return func(*args, **(kwargs or {}))


@graph("linear(x; fc.weight, fc.bias)", "tanh(linear)", "mul(tanh)", "out(mul)")
def function_mode_in_forward(m, x):
    with Scales():
        return F.relu(m.fc(x))


class Counts(TorchDispatchMode):
    """Looks on."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@graph("linear(x; fc.weight, fc.bias)", "sum(linear)", "mul(linear, sum)", "out(mul)")
def dispatch_mode_in_forward(m, x):
    with Counts() as mode:
        y = m.fc(x)
        y = y * y.sum()
    expected = ["aten.t.default", "aten.addmm.default", "aten.sum.default", "aten.mul.Tensor"]
    assert mode.seen == expected, mode.seen
    return y


@graph("zeros()", "add(x, zeros)", "out(add)")
def default_device_in_forward(m, x):
    with torch.device("cpu"):
        return x + torch.zeros(4)


@graph("zeros()", "add(zeros)", "mul(x)", "out(mul)")
def meta_device_in_forward(m, x):
    with torch.device("meta"):
        _ = torch.zeros(4) + 1
    return x * 2


@linked(constants=True, gradients=False)
def fake_tensors_in_forward(m, x):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x) * 2
    return torch.zeros(fake.shape) + x


@graph("mul(x)", "add(mul)", "out(add)")
def functions_not_overridden(m, x):
    with torch._C.DisableTorchFunctionSubclass():
        return x * 2 + 1


class Box:
    """Takes part in torch functions without being a tensor."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [arg.tensor if isinstance(arg, cls) else arg for arg in args]
        return cls(func(*plain, **(kwargs or {})))


@linked(disclosed="subclass")
def object_that_overrides_functions(m, x):
    return torch.add(torch.mul(Box(x), 2), 1).tensor


@graph("rand()", "rand#2()", "add(x, rand#2)", "add#2(add)", "add#3(add#2)", "out(add#3)")
def streams_of_all_kinds(m, x):
    torch.manual_seed(5)
    with torch.random.fork_rng():
        torch.rand(3).tolist()
    return x + torch.rand(4) + random.random() + float(np.random.rand())


@linked()
def deterministic_block(m, x):
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        return m.fc(x)
    finally:
        torch.use_deterministic_algorithms(False)


@graph(
    "scaled_dot_product_attention(q, q, q)",
    "out(scaled_dot_product_attention)",
    args=lambda: (torch.linspace(0, 1, 16).reshape(1, 2, 2, 4),),
)
def chosen_attention_kernel(m, q):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q)


# -- higher-order and custom operators
@torch.library.custom_op("citizens::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("citizens::add_to", mutates_args=("y",))
def add_to(x: torch.Tensor, y: torch.Tensor) -> None:
    y.add_(x)


@linked(gradients=False)
def custom_operator(m, x):
    return twice(x) + 1


@graph("zeros()", "add_to(x, zeros)", "mul(add_to)", "out(mul)", gradients=False)
def custom_operator_that_writes(m, x):
    y = torch.zeros(2, 4)
    add_to(x, y)
    return y * 2


@graph("mul(x, x)", "out(mul)")
def operator_overload(m, x):
    return torch.ops.aten.mul.Tensor(x, x)


@linked(gradients=False)
def condition_operator(m, x):
    return torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, (x,))


# -- compiled
def compiled_child(model):
    model.fast = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")


@linked(prepare=compiled_child)
def compiled_module(m, x):
    return m.fast(x) + 1


@linked()
def compiled_in_forward(m, x):
    return torch.compile(lambda y: y.sin() * 2, backend="eager")(x)


def compiled_in_place(model):
    model.fc.compile(backend="eager")


@linked(prepare=compiled_in_place)
def module_compiled_in_place(m, x):
    return m.fc(x).relu()
