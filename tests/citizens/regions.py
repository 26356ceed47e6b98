"""Custom autograd Functions, checkpoints, autocast, grad modes, and the transforms of torch.func."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.citizens.harness import graph, linked

AUTOCAST = {"device_type": "cpu", "dtype": torch.bfloat16}


def grad_input():
    return (torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_(),)


# -- custom autograd Functions
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Same(torch.autograd.Function):
    """Returns its input: apply makes a new tensor object of it."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return -grad


class ViewAs(Same):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)


class Numpy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        index = x.argmax(1)
        ctx.mark_non_differentiable(index)
        return x * scale, index, None

    @staticmethod
    def backward(ctx, grad, _index, _none):
        return grad, None


class Setup(torch.autograd.Function):
    """The newer form, which transforms can go through."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


@graph("mul(x)", "add(mul)", "out(add)", args=grad_input)
def function_of_torch_ops(m, x):
    return Double.apply(x) + 1


@graph("exp(x)", "add(exp)", "out(add)", args=grad_input)
def function_with_setup_context(m, x):
    return Setup.apply(x) + 1


@linked(args=grad_input)
def function_that_returns_its_input(m, x):
    return Same.apply(x) + 1


@linked(args=grad_input)
def function_that_returns_its_input_after_an_op(m, x):
    return m.out(Same.apply(m.fc(x)))


@linked(args=grad_input)
def function_that_returns_a_view(m, x):
    return ViewAs.apply(m.fc(x)) + 1


@linked(args=grad_input)
def function_with_numpy_inside(m, x):
    return Numpy.apply(m.fc(x)) + 1


@graph("linear(x; fc.weight, fc.bias)", "mul(linear)", "add(mul)", "out(add)", args=grad_input)
def function_that_writes(m, x):
    h = m.fc(x)
    InPlace.apply(h)
    return h + 1


@graph("argmax(x)", "mul(x)", "getitem(mul)", "add(getitem, argmax)", "out(add)", args=grad_input)
def function_of_several_results(m, x):
    scaled, index, _ = Several.apply(x, 3.0)
    return scaled[:, 0] + index


@linked(args=grad_input)
def function_in_a_loop(m, x):
    for _ in range(3):
        x = Same.apply(x)
    return x


@graph("linear(x; fc.weight, fc.bias)", "mul(linear)", "linear#2(mul; out.weight, out.bias)", "out(linear#2)")
def function_without_gradients(m, x):
    with torch.no_grad():
        return m.out(Double.apply(m.fc(x)))


# -- checkpoints
BLOCK = ("linear(x; fc.weight, fc.bias)", "tanh(linear)", "linear#2(tanh; out.weight, out.bias)", "out(linear#2)")


@graph(*BLOCK, args=grad_input, train=True)
def checkpoint_reentrant(m, x):
    return m.out(checkpoint(lambda y: m.fc(y).tanh(), x, use_reentrant=True))


@graph(*BLOCK, args=grad_input, train=True)
def checkpoint_not_reentrant(m, x):
    return m.out(checkpoint(lambda y: m.fc(y).tanh(), x, use_reentrant=False))


@graph("dropout(x)", "linear(dropout; fc.weight, fc.bias)", "out(linear)", args=grad_input, train=True)
def checkpoint_with_dropout(m, x):
    return m.fc(checkpoint(m.drop, x, use_reentrant=True))


@graph(
    "linear(x; fc.weight, fc.bias)",
    "linear#2(linear; out.weight, out.bias)",
    "out(linear#2)",
    args=grad_input,
    train=True,
)
def checkpoint_of_a_sequence(m, x):
    return checkpoint_sequential([m.fc, m.out], 2, x, use_reentrant=False)


@graph(*BLOCK, args=grad_input, train=True)
def checkpoint_selective(m, x):
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    def contexts():
        return create_selective_checkpoint_contexts([torch.ops.aten.addmm.default])

    return m.out(checkpoint(lambda y: m.fc(y).tanh(), x, use_reentrant=False, context_fn=contexts))


@linked(args=grad_input, train=True)
def checkpoint_that_passes_its_input_on(m, x):
    return checkpoint(lambda y: (y, m.fc(y)), x, use_reentrant=True)


@graph("linear(x; fc.weight, fc.bias)", "relu(linear)", "out(relu)", args=grad_input)
def tensors_saved_on_hooks(m, x):
    with torch.autograd.graph.save_on_cpu():
        return torch.relu(m.fc(x))


# -- regions
@graph("linear(x; fc.weight, fc.bias)", "float(linear)", "add(float)", "out(add)")
def autocast_region(m, x):
    with torch.autocast(**AUTOCAST):
        y = m.fc(x)
    return y.float() + 1


@graph("linear(x; fc.weight, fc.bias)", "linear#2(x; fc.weight, fc.bias)", "add(linear, linear#2)", "out(add)")
def autocast_with_cached_weights(m, x):
    with torch.autocast(**AUTOCAST, cache_enabled=True):
        return m.fc(x) + m.fc(x)


@graph("linear(x; fc.weight, fc.bias)", "detach(linear)", "mul(linear, detach)", "out(mul)", args=grad_input)
def detached_factor(m, x):
    h = m.fc(x)
    return h * h.detach()


@graph("mean(x)", "sub(x, mean)", "out(sub)", args=grad_input)
def no_grad_region(m, x):
    with torch.no_grad():
        centre = x.mean()
    return x - centre


@graph("mean(x)", "clone(mean)", "sub(x, clone)", "out(sub)")
def inference_region(m, x):
    with torch.inference_mode():
        centre = x.mean()
    return x - centre.clone()


@graph("mul(x)", "mul#2(mul)", "add(mul#2)", "out(add)")
def inference_region_with_a_write(m, x):
    with torch.inference_mode():
        y = x * 2
        y.mul_(3)
        return y + 1


@graph("mul(x)", "add(mul)", "out(add)")
def gradients_switched_by_hand(m, x):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(before)
    return y + 1


# -- transforms
@linked()
def vmap(m, x):
    return torch.vmap(lambda row: row.sin() * 2)(x)


@linked()
def vmap_of_two_with_dims(m, x):
    return torch.vmap(torch.dot, in_dims=(0, 1))(x, x.T * 2)


@linked()
def vmap_nested(m, x):
    return torch.vmap(torch.vmap(lambda scalar: scalar.exp()))(x)


@linked()
def vmap_out_dims(m, x):
    return torch.vmap(lambda row: row * 2, out_dims=1)(x) + 1


@linked()
def vmap_in_chunks(m, x):
    return torch.vmap(lambda row: row * 2, chunk_size=1)(x) + 1


@linked()
def vmap_of_structures(m, x):
    out = torch.vmap(lambda d: {"a": d["x"] + 1, "b": (d["x"].sum(),)})({"x": x})
    return out["a"] * out["b"][0][:, None]


@linked()
def vmap_with_randomness(m, x):
    return torch.vmap(lambda row: row + torch.randn_like(row), randomness="different")(x)


@linked()
def vmap_of_a_module(m, x):
    return torch.vmap(m.fc)(x)


@linked()
def vmap_passing_its_input_on(m, x):
    return torch.vmap(lambda row: row)(x) * 2


@linked(args=grad_input)
def vmap_of_a_function(m, x):
    return torch.vmap(Setup.apply)(x) + 1


@linked()
def func_grad(m, x):
    return torch.func.grad(lambda y: m.fc(y).pow(2).sum())(x)


@linked()
def func_grad_of_grad(m, x):
    return torch.func.grad(lambda y: torch.func.grad(lambda z: z.sin().sum())(y).sum())(x)


@linked()
def func_grad_and_value(m, x):
    grad, value = torch.func.grad_and_value(lambda y: y.pow(2).sum())(x)
    return grad + value


@linked()
def func_jacrev(m, x):
    return torch.func.jacrev(lambda y: m.fc(y).sin())(x)


@linked()
def func_jacfwd(m, x):
    return torch.func.jacfwd(lambda y: y.sin())(x)


@linked()
def func_hessian(m, x):
    return torch.func.hessian(lambda y: y.pow(3).sum())(x)


@linked()
def func_vjp(m, x):
    value, pull = torch.func.vjp(lambda y: y.sin(), x)
    return pull(value)[0]


@linked()
def func_jvp(m, x):
    return torch.func.jvp(lambda y: y.sin(), (x,), (x * 2,))[1]


@linked()
def func_vmap_of_grad(m, x):
    return torch.vmap(torch.func.grad(lambda row: row.pow(2).sum()))(x)


@linked()
def func_functionalize(m, x):
    return torch.func.functionalize(lambda y: y.clone().mul_(2))(x) + 1


@linked()
def ensemble_by_stacked_state(m, x):
    params, buffers = torch.func.stack_module_state([m.fc, m.out])
    return torch.vmap(lambda p, b: torch.func.functional_call(m.fc, (p, b), x))(params, buffers)


# -- derivatives inside forward
@linked(args=grad_input)
def derivative_in_forward(m, x):
    y = m.fc(x).pow(2).sum()
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    return grad * 2


@linked(disclosed="backward", args=lambda: (torch.linspace(-1, 1, 8).reshape(2, 4),), gradients=False)
def backward_in_forward(m, x):
    y = x.clone().requires_grad_()
    y.pow(2).sum().backward()
    return y.grad * 2


@linked()
def forward_mode_duals(m, x):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x * 2)
        return torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent


# -- transforms with their options
@linked()
def vmap_with_an_argument_for_all(m, x):
    return torch.vmap(lambda row, scale: row * scale, in_dims=(0, None))(x, x.sum())


@linked()
def vmap_that_writes(m, x):
    return torch.vmap(lambda row: row.clone().mul_(2))(x)


@linked()
def vmap_of_a_pair(m, x):
    low, high = torch.vmap(lambda row: (row.min(), row.max()))(x)
    return low + high


@linked(train=True)
def vmap_of_dropout(m, x):
    return torch.vmap(m.drop, randomness="different")(x)


@linked()
def func_grad_with_extras(m, x):
    grad, extra = torch.func.grad(lambda y, z: ((y * z).sum(), y + z), argnums=1, has_aux=True)(x, x * 3)
    return grad + extra


@linked()
def func_grad_of_parameters(m, x):
    def loss(params, y):
        return torch.func.functional_call(m.fc, params, (y,)).pow(2).sum()

    return torch.func.grad(loss)(dict(m.fc.named_parameters()), x)["weight"]


@linked()
def func_per_sample_gradients(m, x):
    def loss(params, y):
        return torch.func.functional_call(m.fc, params, (y,)).pow(2).sum()

    params = {name: p.detach() for name, p in m.fc.named_parameters()}
    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x)["bias"]


@linked()
def func_linearize(m, x):
    value, push = torch.func.linearize(lambda y: y.sin(), x)
    return value + push(x * 2)


@linked(args=grad_input, gradients=False)
def jacobian_of_autograd(m, x):
    return torch.autograd.functional.jacobian(lambda y: y.pow(2).sum(1), x)


@linked(args=grad_input, gradients=False)
def jacobian_of_autograd_vectorized(m, x):
    return torch.autograd.functional.jacobian(lambda y: y.pow(2).sum(1), x, vectorize=True)


class Half(torch.autograd.Function):
    """One result is seen, the other is made by numpy."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, torch.from_numpy(np.cos(x.detach().numpy()))

    @staticmethod
    def backward(ctx, a, b):
        return a * 2


@linked(args=grad_input)
def function_half_of_numpy(m, x):
    a, b = Half.apply(m.fc(x))
    return a + 1, b + 1


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, module):
        ctx.save_for_backward(x)
        with torch.enable_grad():
            return module(x.detach())

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@linked(args=grad_input, gradients=False)
def function_that_calls_a_module(m, x):
    return Inner.apply(m.fc(x), m.out) + 1


@linked()
def function_without_tensor_arguments_that_matter(m, x):
    return Double.apply(x[0]) + Double.apply(torch.ones(4))
