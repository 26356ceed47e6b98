"""A recording sees everything and changes nothing, also when the forward raises."""

from __future__ import annotations

import gc

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.models import recording as zoo


def trace(model, *args, **options):
    result = tl.trace(model, args, **options)
    result.check()
    return result


def snapshot(model):
    return {
        "state": {name: value.clone() for name, value in model.state_dict().items()},
        "flags": [module.training for module in model.modules()],
        "grads": [p.requires_grad for p in model.parameters()],
        "hooks": [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()],
        "attributes": [sorted(vars(m)) for m in model.modules()],
    }


def assert_same(before, after):
    assert before.keys() == after.keys()
    for key in before:
        if key == "state":
            assert all(torch.equal(before[key][name], after[key][name]) for name in before[key])
        else:
            assert before[key] == after[key]


MODELS = [
    (zoo.Conv, (2, 3, 8, 8)),
    (zoo.Loop, (2, 4)),
    (zoo.Attention, (2, 3, 8)),
    (zoo.Noise, (2, 4)),
    (zoo.ListWrite, (2, 4)),
    (zoo.Composite, (2, 4)),
]


@pytest.mark.parametrize(("factory", "shape"), MODELS)
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("save", ["all", "none"])
def test_a_traced_run_is_a_plain_run(factory, shape, train, save):
    torch.manual_seed(0)
    plain = factory().train(train)
    torch.manual_seed(0)
    traced = factory().train(train)
    x = torch.randn(shape)
    torch.manual_seed(7)
    want = plain(x.clone())
    stream = torch.get_rng_state()
    torch.manual_seed(7)
    result = tl.trace(traced, x, save=save)
    assert torch.equal(torch.get_rng_state(), stream)
    assert_same(snapshot(plain), snapshot(traced))
    if save == "all":
        assert torch.allclose(result.result, want, rtol=1e-4, atol=1e-5)
        assert result.result.requires_grad == want.requires_grad
    else:
        assert result.result is None
    torch.manual_seed(7)
    after = traced(x.clone())
    torch.manual_seed(7)
    assert torch.allclose(after, plain(x.clone()), rtol=1e-4, atol=1e-5)


def test_patches_and_collector_are_restored():
    call, script = nn.Module.__call__, torch._C.ScriptMethod.__call__
    assert gc.isenabled()
    trace(zoo.Loop(), torch.randn(2, 4))
    assert nn.Module.__call__ is call
    assert torch._C.ScriptMethod.__call__ is script
    assert gc.isenabled()


def test_a_failing_forward_raises_its_own_error_with_the_partial_trace():
    model, call = zoo.Fails(), nn.Module.__call__
    before = snapshot(model)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        tl.trace(model, torch.randn(2, 4))
    partial = caught.value.partial_trace
    partial.check()
    assert [op.label for op in partial.ops] == ["linear_1_1", "relu_1_2"]
    assert not partial.outcome.completed
    (note,) = caught.value.__notes__
    assert note.startswith("torchlens: the forward stopped after relu_1_2 (recording.py:")
    assert "RuntimeError" in partial.outcome.error
    done = {partial.data.call_key(c.index): c.completed for c in partial.data.calls}
    assert done == {"self:1": False, "good:1": True, "bad:1": False}
    assert_same(before, snapshot(model))
    assert nn.Module.__call__ is call
    assert trace(zoo.Loop(), torch.randn(2, 4)).outcome.completed


def test_gradients_flow_through_a_traced_run():
    model = zoo.Loop()
    x = torch.randn(2, 4, requires_grad=True)
    trace(model, x).result.sum().backward()
    traced = model.inp.weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    assert torch.allclose(traced, model.inp.weight.grad)


def test_a_trace_inside_a_trace_is_refused():
    class Outer(nn.Module):
        def forward(self, x):
            tl.trace(zoo.Loop(), x)
            return x

    with pytest.raises(tl.TorchLensError) as caught:
        tl.trace(Outer(), torch.randn(2, 4))
    assert caught.value.code == "trace_nested"


def test_hooks_of_the_user_run_once_and_their_ops_are_seen():
    model, seen = zoo.Loop(), []
    model.inp.register_forward_hook(lambda module, args, out: seen.append(1) or out * 2)
    result = trace(model, torch.randn(2, 4))
    assert len(seen) == 3
    assert [op.func_name for op in result.ops if op.modules == ("inp:1",)] == ["linear", "mul"]


def test_script_children_are_single_ops_with_arrows_and_parameters():
    result = trace(zoo.Scripted(), torch.randn(2, 4))
    assert [op.label for op in result.ops] == ["add_1_1", "script_1_2", "mul_1_3"]
    assert result["script_1_2"].parents == ("add_1_1",)
    assert result["mul_1_3"].parents == ("script_1_2",)
    assert set(result["script_1_2"].params) == {"script.0.weight", "script.0.bias"}


def test_inference_mode_is_recorded():
    model = zoo.Loop()
    with torch.inference_mode():
        result = trace(model, torch.randn(2, 4))
    assert len(result) == 13
    assert result["tanh_1_5:1"].children == ("linear_2_3:2",)


def test_a_class_with_its_own_call_is_recorded():
    class Own(zoo.Loop):
        def __call__(self, x):
            return self.forward(x) + 1

    result = trace(Own(), torch.randn(2, 4))
    assert result.ops[-1].func_name == "add"
    assert result["output_1"].parents == (result.ops[-1].label,)


def test_two_threads_trace_at_once():
    from concurrent.futures import ThreadPoolExecutor

    models = [zoo.Loop(), zoo.Conv().eval(), zoo.Loop(), zoo.Attention()]
    inputs = [torch.randn(2, 4), torch.randn(1, 3, 8, 8), torch.randn(2, 4), torch.randn(1, 3, 8)]
    alone = [tl.trace(m, x).to_dict()["layers"] for m, x in zip(models, inputs, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda pair: tl.trace(*pair).to_dict()["layers"], zip(models, inputs, strict=True)))
    assert together == alone


def test_a_trace_keeps_neither_model_nor_tensors_alive():
    import weakref

    model, x = zoo.Conv(), torch.randn(2, 3, 8, 8)
    result = tl.trace(model, x, save="none")
    held = [weakref.ref(model), weakref.ref(x), weakref.ref(model.head.weight)]
    del model, x
    gc.collect()
    assert [ref() for ref in held] == [None, None, None]
    assert result["conv2d_1_1"].call_site.line > 0
    assert result["conv2d_1_1"].flops_forward > 0
