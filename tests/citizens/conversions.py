"""Tensors that leave for numpy, lists, numbers or copies and come back, and the old ways of making tensors."""

from __future__ import annotations

import copy
import io
import pickle
import weakref

import numpy as np
import torch
from torch import nn
from torch.utils.data import default_collate
from torch.utils.dlpack import from_dlpack, to_dlpack

from tests.citizens.harness import graph, linked


# -- numpy: a view of the same memory can be linked by its storage; a computed array can only be disclosed.
@linked()
def numpy_view_and_back(m, x):
    return torch.from_numpy((x * 2).numpy()) + 1


@linked(disclosed="numpy")
def numpy_computed(m, x):
    return torch.from_numpy(np.sin((x * 2).numpy())) + 1


@linked(disclosed="numpy")
def numpy_through_torch_tensor(m, x):
    return torch.tensor((x * 2).numpy()) + 1


@linked(disclosed="numpy")
def numpy_through_as_tensor(m, x):
    return torch.as_tensor(np.asarray(x * 2)) + 1


@linked(disclosed="numpy")
def numpy_function_of_a_tensor(m, x):
    return np.exp(x) + 1


@graph("mul(x)", "add(mul)", "out(add)")
def numpy_scalar_factor(m, x):
    return x * np.float32(2.0) + np.int64(1)


@linked(disclosed="numpy")
def numpy_view_written(m, x):
    y = torch.zeros(2, 4)
    y.numpy()[:] = x.numpy()
    return y + 1


@linked()
def dlpack_capsule(m, x):
    return from_dlpack(to_dlpack(x * 2)) + 1


@linked()
def dlpack_object(m, x):
    return torch.from_dlpack(x * 2) + 1


@linked(disclosed="frombuffer")
def memory_of_a_tensor(m, x):
    return torch.frombuffer(memoryview((x * 2).numpy()).cast("B"), dtype=torch.float32) + 1


# -- lists and numbers
@linked(disclosed="tolist")
def list_and_back(m, x):
    return torch.tensor((x * 2).tolist()) + 1


@linked(disclosed="item")
def item_as_fill(m, x):
    return torch.full((2,), x.sum().item())


@linked(disclosed="float")
def float_as_fill(m, x):
    return torch.full((2,), float(x.sum()))


@graph("sum(x)", "mul(x)", "out(mul)")
def item_as_factor(m, x):
    return x * x.sum().item()


@linked(disclosed="int")
def sizes_from_values(m, x):
    return torch.zeros(int(x.abs().sum()), 2)


@linked()
def tensor_of_tensors(m, x):
    return torch.tensor([x.sum(), x.mean()]) * 2


@linked()
def as_tensor_of_a_tensor(m, x):
    return torch.as_tensor(x * 2, dtype=torch.float64) + 1


@linked()
def tensor_of_a_tensor(m, x):
    return torch.tensor(x * 2) + 1


@linked()
def tensor_as_index_of_a_list(m, x):
    rows = [x, x * 2, x * 3]
    return rows[torch.tensor(1)]


@linked()
def python_sum_and_max(m, x):
    return sum(x) + max(x[0, 0], x[1, 1])


# -- old constructors
@linked()
def old_constructor_of_a_tensor(m, x):
    return torch.Tensor(x * 2) + 1


@linked()
def old_float_constructor_of_a_tensor(m, x):
    return torch.FloatTensor(x * 2) + 1


@graph("add(x, const)", "out(add)")
def old_constructor_of_numbers(m, x):
    return x + torch.Tensor([1, 2, 3, 4])


@linked(disclosed="item")
def old_constructor_of_items(m, x):
    return torch.FloatTensor([x.sum().item(), 1.0]) * 2


@linked()
def old_new_of_a_tensor(m, x):
    return x.new(x * 2) + 1


@graph("mul(x)", "new_tensor(x, mul)", "add(new_tensor)", "out(add)")
def new_tensor_of_a_tensor(m, x):
    return x.new_tensor(x * 2) + 1


@linked(gradients=False)
def parameter_of_a_computed_tensor(m, x):
    return nn.Parameter(x * 2) + 1


@linked(gradients=False)
def parameter_of_a_computed_tensor_on_the_module(m, x):
    m.scale = nn.Parameter(x * 2)
    return m.scale + 1


@linked()
def buffer_of_a_computed_tensor(m, x):
    m.register_buffer("scale", x * 2)
    return m.scale + 1


@linked()
def variable(m, x):
    return torch.autograd.Variable(x * 2) + 1


# -- copies
@linked()
def shallow_copy(m, x):
    return copy.copy(x * 2) + 1


@linked()
def deep_copy(m, x):
    return copy.deepcopy(x * 2) + 1


@linked()
def deep_copy_in_a_dict(m, x):
    return copy.deepcopy({"a": [x * 2]})["a"][0] + 1


@linked(disclosed="pickle")
def pickled(m, x):
    return pickle.loads(pickle.dumps(x * 2)) + 1


@linked(disclosed="save")
def saved_and_loaded(m, x):
    file = io.BytesIO()
    torch.save(x * 2, file)
    file.seek(0)
    return torch.load(file) + 1


@graph("mul(x)", "clone(mul)", "contiguous(clone)", "out(contiguous)")
def cloned(m, x):
    return (x * 2).clone().contiguous()


@linked()
def collated(m, x):
    return default_collate([x[0], x[1]]) + default_collate([{"a": x[0]}, {"a": x[1]}])["a"]


# -- identity
@graph("mul(x)", "add(mul)", "out(add)")
def weak_reference(m, x):
    y = x * 2
    return weakref.ref(y)() + 1


@linked()
def swapped(m, x):
    y, z = x * 2, torch.zeros(2, 4)
    torch.utils.swap_tensors(y, z)
    return z + 1


@graph("mul(x)", "ones()", "sub(ones)", "out(sub)")
def swapped_away(m, x):
    y, z = x * 2, torch.ones(2, 4)
    torch.utils.swap_tensors(y, z)
    return y - 1


@graph(*[f"exp{'' if i == 0 else f'#{i + 1}'}(x)" for i in range(50)], "mul(x)", "out(mul)")
def many_dropped(m, x):
    for _ in range(50):
        x.exp()
    return x * 2


def attributes(model):
    model.cache = {"scale": torch.full((4,), 2.0)}


@graph("mul(x, cache['scale'])", "out(mul)", prepare=attributes)
def kept_in_a_dict(m, x):
    return x * m.cache["scale"]


@graph("mul(x, table)", "out(mul)")
def kept_as_an_attribute(m, x):
    return x * m.table


@linked()
def kept_from_the_last_step(m, x):
    m.memory = x * 2
    return m.memory + 1


# -- what goes in and comes out
@graph("linear(x; fc.weight, fc.bias)", "out(x)", "out#2(linear)", "out#3(x)")
def input_returned_twice(m, x):
    return x, m.fc(x), [x]


@graph("mul(x)", "out(; fc.weight)", "out#2(state:1)", "out#3(mul)")
def state_returned(m, x):
    return m.fc.weight, m.state, x * 2


@graph("add(x)", "out(add)", args=lambda: (torch.ones(2), "mean", None, {"deep": [None, 3]}))
def arguments_that_are_no_tensors(m, x, how, nothing, extra):
    return x + extra["deep"][1]


@graph("add(pair.0, pair.1)", "out(add)", args=lambda: ([torch.ones(2), torch.zeros(2)],))
def list_argument(m, pair):
    return pair[0] + pair[1]


@graph("add(x, x)", "out(add)")
def one_tensor_twice(m, x):
    return x + x


@linked()
def distribution_result(m, x):
    return torch.distributions.Normal(m.fc(x), 1 + x.abs())


@linked()
def distribution_sample(m, x):
    return torch.distributions.Normal(m.fc(x), x.abs() + 1).rsample()


@linked()
def distribution_probabilities(m, x):
    d = torch.distributions.Categorical(logits=m.fc(x))
    return d.log_prob(d.sample()) + d.entropy()


@linked()
def distribution_divergence(m, x):
    p, q = torch.distributions.Normal(m.fc(x), 1.0), torch.distributions.Normal(x, 1.0)
    return torch.distributions.kl_divergence(p, q)


# -- no arrow where there is none: memory that was freed comes back at the same address
@graph("mul(x)", "add(x, const)", "out(add)")
def fresh_memory_after_a_dropped_tensor(m, x):
    y = x * 2
    del y
    return x + torch.Tensor([[1, 2, 3, 4], [5, 6, 7, 8]])


@graph("mul(x)", "add(x, const)", "out(add)")
def fresh_array_after_a_dropped_tensor(m, x):
    y = x * 2
    del y
    return x + torch.from_numpy(np.ones((2, 4), dtype=np.float32))


def array(model):
    model.array = np.arange(4, dtype=np.float32)


@graph("add(x, const)", "out(add)", prepare=array)
def array_from_outside(m, x):
    return x + torch.from_numpy(m.array)


@linked(constants=True, prepare=array)
def array_from_outside_written(m, x):
    t = torch.from_numpy(m.array)
    t.add_(x[0])
    return torch.from_numpy(m.array) * 2


@graph("mul(x, table)", "mul#2(x, table)", "add(mul, mul#2)", "out(add)")
def attribute_read_twice(m, x):
    return x * m.table + x * m.table


@linked(constants=True)
def attribute_written(m, x):
    m.table.add_(x[0])
    return m.table * 2


@linked(disclosed="storage")
def storage_copied(m, x):
    y, z = x * 2, torch.zeros(2, 4)
    z.untyped_storage().copy_(y.untyped_storage())
    return z + 1


@linked(disclosed="item")
def items_in_a_list(m, x):
    return torch.tensor([value.item() for value in x.reshape(-1)]) * 2


@linked(disclosed="numpy")
def numpy_array_kept_as_state(m, x):
    m.__dict__["last"] = (x * 2).numpy().copy()
    return torch.as_tensor(m.__dict__["last"])


@graph("mul(x)", "add(mul)", "out(add)")
def printed(m, x):
    y = x * 2
    _ = f"{y}", repr(y)
    return y + 1
