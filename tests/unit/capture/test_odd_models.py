"""Programs that plain PyTorch runs and that a careless recorder changes, refuses, or draws with an arrow missing."""

from __future__ import annotations

import copy
import gc
import random
import sys
import weakref
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import torchlens as tl


class Program(nn.Module):
    """A model whose forward is a function of the test."""

    def __init__(self, function, **members):
        super().__init__()
        self.fc, self.same = nn.Linear(4, 4), nn.Identity()
        self.register_buffer("state", torch.zeros(2, 4))
        self.function = function
        for name, value in members.items():
            setattr(self, name, value)

    def forward(self, *args, **kwargs):
        return self.function(self, *args, **kwargs)


def trace(function, x=None, **options):
    result = tl.trace(Program(function), torch.ones(2, 4) if x is None else x, **options)
    result.check()
    return result


def ancestors(result, label):
    found, waiting = set(), [label]
    while waiting:
        for parent in result[waiting.pop()].parents:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def op(result, func):
    return next(node for node in result.ops if node.func_name == func)


# -- arrows
def aliased_identity(model, x):
    y = x.clone()
    y[0].mul_(2)
    return model.same(y) + 1


def aliased(model, x):
    y = x.clone()
    y[0].mul_(2)
    return y + 1


def out_into_a_view(model, x):
    y = x.clone()
    torch.mul(y[0], 2, out=y[0])
    return y + 1


@pytest.mark.parametrize("program", [aliased_identity, aliased])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_a_write_through_a_view_is_never_lost(program, mode):
    with mode():
        result = trace(program)
    assert op(result, "mul_").label in ancestors(result, "output_1")


def test_out_into_a_view_in_inference_mode():
    with torch.inference_mode():
        result = trace(out_into_a_view)
    assert op(result, "mul").label in ancestors(result, "output_1")


def test_an_identity_shows_the_value_as_it_is_then():
    def program(model, x):
        total = x.sum()
        total.view(()).add_(100)
        return model.same(total)

    identity = op(trace(program), "identity")
    assert identity.value == identity.out.item() == 108.0


def replaced_data(model, x):
    y = torch.ones(2, 4)
    y.data = x * 2
    return y + 1


def written_data(model, x):
    y = torch.ones(2, 4)
    y.data.mul_(x)
    return y + 1


def deep_copied(model, x):
    return copy.deepcopy(x.detach() * 2) + 1


@pytest.mark.parametrize("program", [replaced_data, written_data, deep_copied])
def test_the_input_reaches_the_output(program):
    result = trace(program)
    assert "input_1" in ancestors(result, "output_1")


@pytest.mark.parametrize("count", [20, 40])
def test_writes_through_views_with_reads_between_make_arrows_in_proportion(count):
    def program(model, x):
        table = torch.zeros(count, 4)
        flat, total = table.view(-1), x.sum()
        for i in range(count):
            table[i] = x[0]
            total = total + flat.sum()
        for i in range(count):
            table[i].mul_(2)
            total = total + flat.sum()
        return total

    result = trace(program)
    assert sum(len(op.inputs) for op in result.ops) < 15 * count
    first = next(op.label for op in result.ops if op.func_name == "__setitem__")
    assert first in ancestors(result, "output_1")


def test_an_index_that_is_a_list_is_no_tuple():
    result = trace(lambda model, x: (x[[0, 1]], x[0, 1]))
    assert [dict(op.config)["index"] for op in result.ops] == ["[[0, 1]]", "[0, 1]"]


def test_choices_of_a_loss_are_words_and_hidden_at_their_default():
    result = trace(lambda model, x: (F.mse_loss(x, x), F.mse_loss(x, x, reduction="sum")))
    losses = [dict(op.config) for op in result.ops if op.func_name == "mse_loss"]
    assert losses == [{}, {"reduction": "sum"}]


def test_converting_a_module_in_forward_is_on_the_way_of_its_weights():
    def program(model, x):
        model.fc(x)
        model.fc.double()
        return model.fc(x.double())

    result = trace(program)
    assert op(result, "double").label in ancestors(result, "output_1")


def test_arrows_of_a_public_function_have_its_own_argument_positions():
    model = nn.Embedding(10, 4)
    scaled = Program(lambda m, ids: F.embedding(ids, model.weight * 2))
    result = tl.trace(scaled, torch.tensor([[1, 2]]))
    labels = result.data.nodes.label
    assert [(labels[ref.node], ref.position) for ref in op(result, "embedding").inputs] == [
        ("input_1", (0,)),
        ("mul_1_1", (1,)),
    ]


def test_a_buffer_assigned_by_index_has_a_new_version():
    def program(model, x):
        model.state[0] = x[0]
        return model.state + x

    result = trace(program)
    assert len(next(b for b in result.buffers if b.address == "state").versions) == 2
    assert "setitem_1_2" in ancestors(result, "output_1")


def test_constants_met_only_in_the_result_stand_before_the_outputs():
    outside = torch.ones(3)
    result = trace(lambda model, x: (x + 1, outside, model.state))
    assert [node.kind for node in result.nodes][-3:] == ["output", "output", "output"]
    assert result["output_2"].parents == ("constant_1",)
    assert result["output_3"].parents == ("buffer_1",)


def test_modules_and_parameters_made_in_forward_have_their_address():
    def program(model, x):
        model.late = nn.Linear(4, 4)
        model.scale = nn.Parameter(torch.ones(4))
        return model.late(x) * model.scale

    result = trace(program)
    assert op(result, "linear").params == ("late.weight", "late.bias")
    assert op(result, "mul").params == ("scale",)


# -- values
def test_statistics_before_a_fused_update_are_kept_as_they_were():
    model = nn.BatchNorm1d(4)
    result = tl.trace(model, torch.randn(8, 4) + 5)
    assert torch.equal(result["running_mean:1"].out, torch.zeros(4))
    assert torch.equal(result["running_mean:2"].out, model.running_mean)


def test_memory_handed_to_numpy_does_not_change_kept_values():
    def program(model, x):
        y = x * 2
        y.numpy()[0] = 7
        return y + 1

    assert torch.equal(op(trace(program), "mul").out, torch.full((2, 4), 2.0))


def test_values_of_inference_tensors_are_copies():
    with torch.inference_mode():
        result = trace(lambda model, x: model.fc(x))
        before = result.ops[0].out.clone()
        result.result.add_(1)
        assert torch.equal(result.ops[0].out, before)


def test_memory_given_up_was_copied_before():
    def program(model, x):
        y = x * 2
        z = y + 1
        y.untyped_storage().resize_(0)
        return z

    result = trace(program)
    assert torch.equal(op(result, "add").out, op(result, "mul").out + 1)


# -- the user's own interception
class Hundred(torch.Tensor):
    """A tensor that answers softmax by a product."""

    asked: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked.append(func.__name__)
        if func is F.softmax:
            return super().__torch_function__(torch.mul, types, (args[0], 100.0))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_keeps_its_say_and_hears_nothing_new():
    model = Program(lambda m, x: F.softmax(x, -1) + 1)
    x = torch.randn(2, 4).as_subclass(Hundred)
    Hundred.asked = []
    want = model(x)
    plain, Hundred.asked = Hundred.asked, []
    result = tl.trace(model, x)
    assert Hundred.asked == plain
    assert torch.equal(result.result.as_subclass(torch.Tensor), want.as_subclass(torch.Tensor))
    assert "input_1" in ancestors(result, "output_1")


class Softmax(TorchFunctionMode):
    """An outer mode that replaces softmax and counts what it sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(getattr(func, "__name__", ""))
        return args[0] * 100 if func is F.softmax else func(*args, **(kwargs or {}))


def test_an_outer_function_mode_keeps_its_say_and_sees_no_question_of_ours():
    model, x = Program(lambda m, x: F.softmax(x, -1) + x.sum()), torch.randn(2, 4)
    with Softmax() as plain:
        want = model(x)
    with Softmax() as traced:
        result = tl.trace(model, x)
    assert torch.equal(result.result, want)
    assert [name for name in traced.seen if name in ("item", "detach", "__get__", "untyped_storage")] == []
    assert [name for name in plain.seen if name in ("softmax", "add")] == ["softmax", "add"]


class NoSync(TorchDispatchMode):
    """Refuses to read a value from a tensor."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("no host sync")
        return func(*args, **(kwargs or {}))


def test_a_dispatch_mode_never_sees_a_value_being_read():
    with NoSync():
        result = trace(lambda model, x: x.sum() * 2)
    assert result.ops[-1].value == 16.0


def test_a_default_device_leaves_functions_opened():
    with torch.device("cpu"):
        result = trace(lambda model, x: F.interpolate(x[:, None], scale_factor=2.0))
    assert result.ops[-1].func_name == "interpolate"


# -- never refused
def test_cyclic_and_overridden_registries():
    class Child(nn.Module):
        def __init__(self, parent):
            super().__init__()
            self.up, self.fc = parent, nn.Linear(4, 4)

        def named_parameters(self, *args, **kwargs):
            raise TypeError("not for you")

        def forward(self, x):
            return self.fc(x)

    class Parent(nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child(self)

        def forward(self, x):
            return self.child(x)

    result = tl.trace(Parent(), torch.randn(2, 4))
    assert op(result, "linear").params == ("child.fc.weight", "child.fc.bias")
    assert [m.address for m in result.modules] == ["", "child", "child.fc"]


def test_a_module_shared_at_every_level_is_no_explosion():
    model = nn.Linear(4, 4)
    for _ in range(40):
        outer = nn.Module()
        outer.a = outer.b = model
        model = outer
    model.forward = lambda x: x + 1
    result = tl.trace(model, torch.randn(2, 4))
    assert len(result.modules) == 41


def test_frozen_script_modules():
    frozen = torch.jit.freeze(torch.jit.script(nn.Linear(4, 4).eval()))
    result = tl.trace(frozen, torch.randn(2, 4))
    assert op(result, "script").shape == (2, 4)


def test_results_whose_containers_refuse_to_be_read():
    class Lazy(Mapping):
        def __getitem__(self, key):
            raise RuntimeError("later")

        def __iter__(self):
            return iter(("a",))

        def __len__(self):
            return 1

    class Holder:
        def __init__(self, y):
            self.y, self.library = y, torch

    result = trace(lambda model, x: (Lazy(), Holder(x + 1)))
    assert [node.path for node in result.nodes if node.kind == "output"] == ["1.y"]


def test_sequences_of_the_users_own_class_are_never_constructed():
    class Pair(tuple):
        def __new__(cls, first, second):
            return super().__new__(cls, (first, second))

    result = trace(lambda model, x: F.interpolate(x[None, None], size=Pair(3, 3)))
    assert result.ops[-1].shape == (1, 1, 3, 3)


@pytest.mark.parametrize("attribute", ["__str__", "__setattr__"])
def test_hostile_exceptions_reach_the_caller_unchanged(attribute):
    def refuse(*_):
        raise ZeroDivisionError("from the exception itself")

    hostile = type("Hostile", (Exception,), {attribute: refuse})

    def program(model, x):
        raise hostile

    with pytest.raises(hostile) as caught:
        trace(program)
    assert any(entry.name == "program" for entry in caught.traceback)


def test_nesting_as_deep_as_a_plain_run_allows():
    model = nn.Linear(4, 4)
    for _ in range(200):
        model = nn.Sequential(model)
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(1000)
        plain = model(torch.ones(1, 4))
        result = tl.trace(model, torch.ones(1, 4))
        assert torch.equal(plain, result.result)
        assert sys.getrecursionlimit() == 1000
    finally:
        sys.setrecursionlimit(limit)


# -- nothing is kept
def test_arguments_that_are_no_plain_values_are_not_kept():
    class Big:
        pass

    held = []

    def program(model, x):
        big = Big()
        held.append(weakref.ref(big))
        table = np.zeros(3)
        held.append(weakref.ref(table))
        return x.apply_(lambda value, big=big: value) + torch.as_tensor(table).sum()

    result = trace(program, torch.ones(2, 4), save="none")
    gc.collect()
    assert [ref() for ref in held] == [None, None]
    assert result["output_1"].shape == (2, 4)


def test_a_failed_run_lets_the_model_go_at_once():
    model = Program(lambda m, x: 1 / 0)
    held = weakref.ref(model)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError):
            tl.trace(model, torch.ones(1, 4), save="none")
        del model
        assert held() is None
    finally:
        gc.enable()


def test_draw_puts_back_what_forward_changes():
    def program(model, x):
        random.random()
        np.random.rand()
        model.state = x * 2
        model.fc.training = True
        return x

    model = Program(program)
    before, python, numpy = model.state, random.getstate(), np.random.get_state()[1].copy()
    drawing = tl.draw(model, torch.ones(2, 4), file_format="dot")
    assert model.state is before
    assert random.getstate() == python
    assert (np.random.get_state()[1] == numpy).all()
    assert drawing.receipt.buffers_restored == ("state",)
    assert drawing.receipt.state_verified


def test_an_encoder_that_would_have_zeroed_its_padding_says_so():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 1).eval()
    x, mask = torch.randn(2, 3, 8), torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        padded = tl.trace(model, x, input_kwargs={"src_key_padding_mask": mask})
        plain = tl.trace(model, x)
    assert "zeros at padded positions" in padded.outcome.advisories[0]
    assert plain.outcome.advisories == []
