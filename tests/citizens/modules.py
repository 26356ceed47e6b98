"""Modules and their state: hooks, parametrizations, direct calls of forward, state that changes in the run."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from tests.citizens.harness import deep, graph, linked

FC = "linear(x; fc.weight, fc.bias)"


def needs_gradient():
    return (torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_(),)


# -- hooks
def replaces_output(model):
    model.fc.register_forward_hook(lambda module, args, out: out * 2)


@graph(FC, "mul(linear)", "add(mul)", "out(add)", prepare=replaces_output)
def hook_that_replaces_the_output(m, x):
    return m.fc(x) + 1


def replaces_input(model):
    model.fc.register_forward_pre_hook(lambda module, args: (args[0] * 2,))


@graph("mul(x)", "linear(mul; fc.weight, fc.bias)", "out(linear)", prepare=replaces_input)
def hook_that_replaces_the_input(m, x):
    return m.fc(x)


def keyword_hooks(model):
    model.fc.register_forward_pre_hook(lambda module, args, kwargs: ((kwargs["input"] + 1,), {}), with_kwargs=True)
    model.fc.register_forward_hook(lambda module, args, kwargs, out: out - args[0], with_kwargs=True)


@graph("add(x)", "linear(add; fc.weight, fc.bias)", "sub(linear, add)", "out(sub)", prepare=keyword_hooks)
def hooks_with_keywords(m, x):
    return m.fc(input=x)


def keeps_activations(model):
    object.__setattr__(model, "seen", [])
    model.fc.register_forward_hook(lambda module, args, out: model.seen.append(out.detach()))


@graph(FC, "detach(linear)", "relu(linear)", "out(relu)", prepare=keeps_activations)
def hook_that_keeps_the_output(m, x):
    return torch.relu(m.fc(x))


def backward_hooks(model):
    model.fc.register_full_backward_hook(lambda module, grad_in, grad_out: None)
    model.out.register_full_backward_pre_hook(lambda module, grad_out: None)


@linked(args=needs_gradient, prepare=backward_hooks)
def full_backward_hooks(m, x):
    return m.out(m.fc(x))


@linked(prepare=backward_hooks)
def full_backward_hooks_of_an_input_without_gradient(m, x):
    return m.out(m.fc(x)) + x


@graph(FC, "relu(linear)", "out(relu)", args=needs_gradient)
def hook_on_a_tensor(m, x):
    h = m.fc(x)
    h.register_hook(lambda grad: grad * 2)
    h.retain_grad()
    return torch.relu(h)


@graph(FC, "mul(linear)", "out(mul)")
def hook_on_all_modules(m, x):
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, args, out: out * 2 if module is m.fc else None
    )
    try:
        return m.fc(x)
    finally:
        handle.remove()


# -- parametrizations
def weight_normed(model):
    parametrizations.weight_norm(model.fc)


@graph(
    "weight_norm(; fc.parametrizations.weight.original1, fc.parametrizations.weight.original0)",
    "linear(x, weight_norm; fc.bias)", "out(linear)", prepare=weight_normed,
)  # fmt: skip
def weight_norm(m, x):
    return m.fc(x)


def spectral_normed(model):
    parametrizations.spectral_norm(model.fc)


@linked(prepare=spectral_normed, train=True)
def spectral_norm_in_training(m, x):
    return m.fc(x)


@linked(prepare=spectral_normed)
def spectral_norm_in_evaluation(m, x):
    return m.fc(x)


def old_norms(model):
    nn.utils.weight_norm(model.fc)
    nn.utils.spectral_norm(model.out)


@linked(prepare=old_norms, train=True)
def norms_by_hooks(m, x):
    return m.out(m.fc(x))


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


def symmetric(model):
    parametrize.register_parametrization(model.fc, "weight", Symmetric())


SYMMETRIC = (
    "triu(; fc.parametrizations.weight.original)", "triu#2(; fc.parametrizations.weight.original)", "T(triu#2)",
    "add(triu, T)",
)  # fmt: skip


@graph(*SYMMETRIC, "linear(x, add; fc.bias)", "out(linear)", prepare=symmetric)
def own_parametrization(m, x):
    return m.fc(x)


@graph(
    *SYMMETRIC, "linear(x, add; fc.bias)", "linear#2(linear, add; fc.bias)", "out(linear#2)", prepare=symmetric
)  # fmt: skip
def cached_parametrization(m, x):
    with parametrize.cached():
        return m.fc(m.fc(x))


def pruned(model):
    prune.l1_unstructured(model.fc, "weight", amount=0.5)


@graph("to(fc.weight_mask:1)", "mul(to; fc.weight_orig)", "linear(x, mul; fc.bias)", "out(linear)", prepare=pruned)
def pruned_weight(m, x):
    return m.fc(x)


# -- state used otherwise
@graph("mul(; fc.weight)", "linear(x, mul)", "out(linear)")
def weight_computed_in_forward(m, x):
    return F.linear(x, m.fc.weight * 2)


@graph("mul(; fc.weight)", "linear(x, mul; fc.bias)", "out(linear)")
def functional_call(m, x):
    return torch.func.functional_call(m.fc, {"weight": m.fc.weight * 2}, (x,))


@graph("linear(x, w)", "out(linear)", args=deep(torch.ones(2, 4), torch.ones(3, 4)), gradients=False)
def functional_call_with_an_input(m, x, w):
    return torch.func.functional_call(m.fc, {"weight": w, "bias": None}, (x,))


def tied(model):
    model.out.weight = model.fc.weight


@graph(FC, "linear#2(linear; fc.weight, out.bias)", "out(linear#2)", prepare=tied)
def tied_weights(m, x):
    return m.out(m.fc(x))


def aliased(model):
    model.view = nn.Parameter(model.fc.weight.detach())


@graph(FC, "linear#2(linear; view)", "out(linear#2)", prepare=aliased)
def parameters_of_one_storage(m, x):
    return F.linear(m.fc(x), m.view)


@graph(
    FC,
    "sum(linear)",
    "mul(sum)",
    "add(mul; fc.weight)",
    "linear#2(x, add; fc.weight, fc.bias)",
    "out(linear#2)",
    gradients=False,
)
def weight_updated_in_forward(m, x):
    with torch.no_grad():
        m.fc.weight.add_(m.fc(x).sum() * 0.1)
        return m.fc(x)


@graph("add(state:1)", "state:2(add)", "add#2(x, state:2)", "out(add#2)")
def buffer_counted(m, x):
    m.state.add_(1)
    return x + m.state


@graph("add(state:1)", "state:2(add)", "add#2(x, state:2)", "out(add#2)")
def buffer_reassigned(m, x):
    m.state = m.state + 1
    return x + m.state


@graph("mean(x)", "lerp(state:1, mean)", "state:2(lerp)", "sub(x, state:2)", "out(sub)")
def buffer_moving_average(m, x):
    m.state.lerp_(x.mean(0), 0.1)
    return x - m.state


@graph("mul(x)", "sum(mul)", "copy(state:1, sum)", "state:2(copy)", "out(mul)")
def buffer_written_and_not_read(m, x):
    y = x * 2
    m.state.copy_(y.sum(0))
    return y


@graph(
    "add(bn.num_batches_tracked:1)",
    "bn.num_batches_tracked:2(add)",
    "batch_norm(x, bn.running_mean:1, bn.running_var:1; bn.weight, bn.bias)",
    "bn.running_mean:2(batch_norm)",
    "bn.running_var:2(batch_norm)",
    "out(batch_norm)",
    train=True,
)
def batch_norm_in_training(m, x):
    return m.bn(x)


@graph("batch_norm(x, bn.running_mean:1, bn.running_var:1; bn.weight, bn.bias)", "out(batch_norm)")
def batch_norm_in_evaluation(m, x):
    return m.bn(x)


@graph("ones()", "add(x, ones; scale)", "out(add)", gradients=False)
def parameter_made_in_forward(m, x):
    m.scale = nn.Parameter(torch.ones(4))
    return x + m.scale


def spare(model):
    model.scale = nn.Parameter(torch.ones(4))


@graph("mul(x; scale)", "add(mul)", "out(add)", prepare=spare)
def parameter_deleted_in_forward(m, x):
    y = x * m.scale
    del m.scale
    return y + 1


def lazy(model):
    model.lazy = nn.LazyLinear(3)


@linked(prepare=lazy)
def lazy_module(m, x):
    return m.lazy(x)


# -- modules met otherwise
@graph("linear(x; fc.weight, fc.bias)", "out(linear)")
def forward_called_directly(m, x):
    return m.fc.forward(x)


def in_containers(model):
    model.plain = [nn.Linear(4, 4)]
    model.named = {"a": nn.Linear(4, 4)}


@graph(
    "linear(x; plain[0].weight, plain[0].bias)",
    "linear#2(linear; named['a'].weight, named['a'].bias)",
    "out(linear#2)",
    prepare=in_containers,
)
def modules_in_plain_containers(m, x):
    return m.named["a"](m.plain[0](x))


@linked(gradients=False)
def module_made_in_forward(m, x):
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU())(x)


@graph(
    "data(; fc.weight)", "clone(data)", "data#2(; fc.bias)", "clone#2(data#2)",
    "linear(x, clone, clone#2; Linear.weight, Linear.bias)", "out(linear)", gradients=False,
)  # fmt: skip
def module_deep_copied_in_forward(m, x):
    return copy.deepcopy(m.fc)(x)


def stack(model):
    model.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


@graph(
    "linear(x; net.0.weight, net.0.bias)",
    "relu(linear)",
    "linear#2(relu; net.2.weight, net.2.bias)",
    "out(linear#2)",
    prepare=stack,
)
def slices_of_a_sequence(m, x):
    return m.net[2:](m.net[:2](x))


class Trap(nn.Module):
    """Every attribute that is missing is an error of another kind, and so is its length."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_modules", {}):
            return self._modules[name]
        raise AttributeError(f"trap: {name}")

    def __len__(self):
        return 0

    def __bool__(self):
        raise RuntimeError("do not ask")

    def __eq__(self, other):
        raise RuntimeError("do not compare")

    __hash__ = nn.Module.__hash__

    @property
    def costly(self):
        raise RuntimeError("do not read")

    def forward(self, x):
        return self.fc(x)


def trapped(model):
    model.trap = Trap()


@graph("linear(x; trap.fc.weight, trap.fc.bias)", "out(linear)", prepare=trapped)
def module_full_of_traps(m, x):
    return m.trap(x)


class Caller(nn.Module):
    """Overrides the call itself."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def __call__(self, x, *, scale=1.0):
        return super().__call__(x) * scale

    def forward(self, x):
        return self.fc(x)


def caller(model):
    model.caller = Caller()


@graph("linear(x; caller.fc.weight, caller.fc.bias)", "mul(linear)", "out(mul)", prepare=caller)
def overridden_call(m, x):
    return m.caller(x, scale=2.0)


def instance_forward(model):
    model.fc.forward = lambda x: x * 2


@graph("mul(x)", "out(mul)", prepare=instance_forward)
def forward_replaced_on_the_instance(m, x):
    return m.fc(x)


class Recursive(nn.Module):
    """Calls itself."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, depth=2):
        return self.fc(x) if depth == 0 else self(self.fc(x), depth - 1)


def recursive(model):
    model.again = Recursive()


W = "again.fc.weight, again.fc.bias"


@graph(f"linear(x; {W})", f"linear#2(linear; {W})", f"linear#3(linear#2; {W})", "out(linear#3)", prepare=recursive)
def module_that_calls_itself(m, x):
    return m.again(x)


def generator_rows(x):
    for row in x.unbind():
        yield row * 2


@graph("unbind(x)", "mul(unbind[0])", "mul#2(unbind[1])", "stack(mul, mul#2)", "out(stack)")
def helper_that_yields(m, x):
    return torch.stack(list(generator_rows(x)))


def test_time_training(model):
    object.__setattr__(model, "optimizer", torch.optim.SGD(model.fc.parameters(), lr=0.1))


@linked(prepare=test_time_training, disclosed="backward", gradients=False)
def optimizer_step_in_forward(m, x):
    m.fc(x).pow(2).mean().backward()
    m.optimizer.step()
    m.optimizer.zero_grad()
    return m.fc(x)


@linked(gradients=False)
def module_converted_in_forward(m, x):
    return m.fc.double()(x.double())


@graph("linear(x; fc.weight, fc.bias)", "out(linear)")
@torch.no_grad()
def forward_decorated(m, x):
    return m.fc(x)


def renormed(model):
    model.embed = nn.Embedding(8, 4, max_norm=0.5)


@graph(
    "contiguous(ids)",
    "detach(; embed.weight)",
    "embedding_renorm(detach, contiguous)",
    "embedding(contiguous, embedding_renorm; embed.weight)",
    "out(embedding)",
    args=deep(torch.tensor([1, 2])),
    prepare=renormed,
)
def embedding_that_renormalises(m, ids):
    return m.embed(ids)


@graph("data(; fc.weight)", "mul(data)", "linear(x, mul; fc.weight, fc.bias)", "out(linear)", gradients=False)
def weight_written_through_data(m, x):
    m.fc.weight.data.mul_(2)
    return m.fc(x)


@graph("mul(x)", "sum(mul)", "linear(x; fc.weight, fc.bias)", "out(linear)")
def module_with_a_side_value(m, x):
    m.loss = (x * 2).sum()
    return m.fc(x)


# -- containers and registration by hand
def lists(model):
    model.weights = nn.ParameterList([torch.ones(4), torch.ones(4) * 2])
    model.named = nn.ParameterDict({"a": torch.ones(4)})


@graph("mul(x; weights.0)", "mul#2(mul; weights.1)", "add(mul#2; named.a)", "out(add)", prepare=lists)
def parameter_containers(m, x):
    for weight in m.weights:
        x = x * weight
    return x + m.named["a"]


@linked(constants=True)
def buffer_replaced_by_a_constant(m, x):
    m.state = m.table
    return x * 2 + m.state


@graph("add(x, state:1)", "add#2(add, state:1)", "out(add#2)")
def buffer_read_twice(m, x):
    return x + m.state + m.state


@graph(
    "mul(state:1)",
    "state:2(mul)",
    "add(x, state:2)",
    "mul#2(state:2)",
    "state:3(mul#2)",
    "add#2(add, state:3)",
    "out(add#2)",
)
def buffer_written_between_reads(m, x):
    m.state.mul_(2)
    y = x + m.state
    m.state.mul_(2)
    return y + m.state


def alias_buffer(model):
    model.register_buffer("part", model.state[:2])


@linked(prepare=alias_buffer)
def buffer_written_through_another(m, x):
    m.part.add_(x[0, :2])
    return x + m.state


@linked()
def bound_method_called(m, x):
    return nn.Linear.forward(m.fc, x)


@linked()
def module_call_by_class(m, x):
    return nn.Linear.__call__(m.fc, x)


@linked()
def jit_ignored_and_unused(m, x):
    return torch.jit.ignore(lambda y: y * 2)(x)


def shared(model):
    model.first = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model.second = nn.Sequential(model.first[0], nn.Tanh())


@graph(
    "linear(x; first.0.weight, first.0.bias)",
    "relu(linear)",
    "linear#2(relu; first.0.weight, first.0.bias)",
    "tanh(linear#2)",
    "out(tanh)",
    prepare=shared,
)
def module_shared_by_two(m, x):
    return m.second(m.first(x))


class Early(Exception):
    """Ends a block from inside."""


class Stops(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        raise Early(self.fc(x))


def stops(model):
    model.stops = Stops()


@graph("linear(x; stops.fc.weight, stops.fc.bias)", "relu(linear)", "out(relu)", prepare=stops)
def result_by_an_exception(m, x):
    try:
        m.stops(x)
    except Early as early:
        return torch.relu(early.args[0])
