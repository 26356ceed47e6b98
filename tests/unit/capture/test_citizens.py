"""Odd programs: what is recorded is the graph that they compute, and the run is a plain run."""

from __future__ import annotations

import gc
import json
import pickle
import subprocess
import sys
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import torchlens as tl
from tests.citizens import conversions, kinds, modules, regions, surroundings
from tests.citizens.harness import CASES, Host, advisories, build, check, ones, rows
from torchlens.inputs.leaves import leaves
from torchlens.validation import validate_forward_pass

AREAS = (regions, kinds, conversions, modules, surroundings)
BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.program.__module__.rpartition('.')[2]}-{case.name}")
def test_program(case):
    trace = check(case)
    json.dumps(trace.to_dict(), allow_nan=False)
    assert trace.draw(file_format="dot").dot.startswith(("digraph", "//"))
    values_are_right_or_refused(trace)


def values_are_right_or_refused(trace):
    for node in trace.nodes:
        out = value_or_code(node)
        if isinstance(out, str):
            assert out.startswith("payload_")
            continue
        tensors = [tensor.detach().clone() for _, tensor in leaves(out)]
        specs = [spec for spec in node.outs if spec.shape is not None]
        if len(specs) == len(node.outs):
            assert [tuple(t.shape) for t in tensors] == [spec.shape for spec in specs][: len(tensors)]


def value_or_code(node):
    try:
        return node.out
    except tl.TorchLensError as error:
        return error.code


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_program_is_replayed(case):
    torch.manual_seed(1)
    report = validate_forward_pass(build(case), case.args())
    # What is only disclosed cannot be replayed, and the proof says so.
    disclosed = case.disclosed and {failure.check for failure in report.failures} <= {"parents", "replay"}
    assert report.ok or disclosed, repr(report)


def test_names_are_given_once():
    assert len(BY_NAME) == len(CASES)


def traced(program, *args, **options):
    torch.manual_seed(0)
    trace = tl.trace(Host(program).eval(), args or ones(), **options)
    trace.check()
    return trace


def modules_of(trace, func):
    return [node["module"] for node in trace.to_dict()["nodes"] if node["func"] == func]


# -- frames and attribution
def test_forward_called_directly_opens_a_module_frame():
    trace = traced(lambda m, x: m.out(m.fc.forward(x)))
    assert modules_of(trace, "linear") == ["fc:1", "out:1"]
    assert trace.modules["fc"].num_calls == 1


def test_forward_that_calls_its_parents_forward_opens_no_second_frame():
    class Scaled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    trace = tl.trace(nn.Sequential(Scaled(4, 4)), ones())
    assert trace.modules["0"].num_calls == 1
    assert modules_of(trace, "linear") == modules_of(trace, "mul") == ["0:1"]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_modules_keep_their_frames(reentrant):
    from torch.utils.checkpoint import checkpoint

    x = ones()[0].requires_grad_()
    trace = traced(lambda m, y: m.out(checkpoint(m.fc, y, use_reentrant=reentrant)), x)
    trace.result.sum().backward()
    assert modules_of(trace, "linear") == ["fc:1", "out:1"]
    assert len(trace) == 2


def test_a_hook_belongs_to_its_module():
    trace = tl.trace(build(BY_NAME["hook_that_replaces_the_output"]), ones())
    assert modules_of(trace, "mul") == ["fc:1"]
    assert modules_of(trace, "add") == [""]


def test_autocast_decides_the_dtype():
    trace = tl.trace(build(BY_NAME["autocast_region"]), ones())
    assert [op.dtype for op in trace.ops] == ["bfloat16", "float32", "float32"]


def test_a_scripted_norm_writes_its_statistics():
    trace = tl.trace(build(BY_NAME["script_module_that_updates_statistics"]), ones())
    versions = {
        buffer.address: len(buffer.versions) for buffer in trace.buffers if buffer.address.startswith("script.")
    }
    assert versions == {"script.running_mean": 2, "script.running_var": 2, "script.num_batches_tracked": 2}


# -- roots of other kinds
def body():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()


def exported():
    return torch.export.export(body(), ones()).module()


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return body()


ROOTS = {
    "graph": lambda: torch.fx.symbolic_trace(body()),
    "exported": exported,
    "compiled": lambda: torch.compile(body(), backend="eager"),
    "parallel": lambda: nn.DataParallel(body()),
    "averaged": lambda: torch.optim.swa_utils.AveragedModel(body()),
}


@pytest.mark.parametrize("kind", sorted(ROOTS))
def test_roots_of_other_kinds_are_recorded_inside(kind):
    model = ROOTS[kind]()
    want = model(*ones())
    trace = tl.trace(model, ones())
    trace.check()
    assert torch.equal(trace.result, want)
    assert [op.func_name.partition(".")[0] for op in trace.ops] == ["linear", "relu"]
    assert [len(op.params) for op in trace.ops] == [2, 0]
    assert len(trace.input_layers) == len(trace.output_layers) == 1


def test_a_distributed_root_is_transparent():
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("torch was built without gloo")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        trace = tl.trace(nn.parallel.DistributedDataParallel(body()), ones())
    finally:
        distributed.destroy_process_group()
    trace.check()
    assert [op.func_name for op in trace.ops] == ["linear", "relu"]
    assert trace.input_layers == ("input_1",)
    assert trace.nodes[0].path == "input"


@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, ones())], ids=["scripted", "traced"])
def test_a_scripted_root_is_one_op(make):
    trace = tl.trace(make(body()), ones())
    trace.check()
    assert [len(op.params) for op in trace.ops] == [2]
    assert trace.ops[0].parents == ("input_1",)


def test_a_fake_model():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        model, x = body(), torch.randn(2, 4)
        trace = tl.trace(model, x)
    trace.check()
    assert [op.shape for op in trace.ops] == [(2, 4), (2, 4)]
    assert trace.ops[0].parents == ("input_1",)


def test_a_forward_that_returns_a_generator_is_not_run_through():
    def program(m, x):
        def steps():
            for _ in range(2):
                yield m.fc(x)

        return steps()

    trace = traced(program)
    assert isinstance(trace.result, types.GeneratorType)
    assert len(trace) == 0
    assert len(list(trace.result)) == 2


# -- several at once
def test_traces_in_several_threads_do_not_mix():
    names = ["function_of_torch_ops", "buffer_counted", "hooks_with_keywords", "own_parametrization"] * 3
    barrier = threading.Barrier(len(names))

    def work(name):
        case = BY_NAME[name]
        model, args = build(case), case.args()
        barrier.wait()
        return rows(tl.trace(model, args), case.program)

    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(work, names))
    assert found == [BY_NAME[name].graph for name in names]
    assert nn.Module.__call__ is nn.Module._wrapped_call_impl


def test_work_of_another_thread_is_not_recorded():
    model, started, done = nn.Linear(4, 4), threading.Event(), threading.Event()

    def other():
        started.wait()
        model(torch.ones(1, 4)).relu()
        done.set()

    def program(m, x):
        started.set()
        assert done.wait(10)
        return m.fc(x)

    thread = threading.Thread(target=other)
    thread.start()
    trace = traced(program)
    thread.join()
    assert [op.func_name for op in trace.ops] == ["linear"]
    assert advisories(trace) == []


def test_a_trace_inside_a_traced_forward_is_refused():
    def program(m, x):
        with pytest.raises(tl.TorchLensError) as caught:
            tl.trace(m.fc, x)
        assert caught.value.code == "trace_nested"
        return m.fc(x)

    assert len(traced(program)) == 1


# -- what stays behind
def test_facts_keep_no_activation_alive():
    seen = []

    def program(m, x):
        h = m.fc(x)
        seen.append(weakref.ref(h))
        return torch.relu(h)

    trace = traced(program, save="none")
    gc.collect()
    assert seen[0]() is None
    assert len(trace) == 2


def test_a_recorded_model_can_be_pickled_and_copied():
    model = body()
    before = pickle.dumps(model)
    tl.trace(model, ones())
    assert pickle.dumps(model) == before


def test_the_graph_of_gradients_is_let_go():
    x = ones()[0].requires_grad_()
    trace = traced(lambda m, y: m.fc(y).exp(), x, save="none")
    node = weakref.ref(x)
    del x
    gc.collect()
    assert node() is None
    assert trace.outcome.completed


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, StopIteration, SystemExit])
def test_an_error_in_a_custom_function_leaves_everything_as_before(error):
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp()
            raise error("no")

    with pytest.raises(error) as caught:
        traced(lambda m, x: m.out(Raises.apply(m.fc(x))))
    assert [op.func_name for op in caught.value.partial_trace.ops] == ["linear", "exp"]
    assert torch._C._len_torch_function_stack() == 0
    assert gc.isenabled()


def test_compiling_for_the_first_time_inside_a_recorded_forward():
    code = """
import sys, torch, torchlens as tl
from torch import nn
class M(nn.Module):
    def forward(self, x):
        return torch.compile(lambda y: y.sin() * 2, backend="eager")(x)
assert "torch._dynamo" not in sys.modules
trace = tl.trace(M(), torch.ones(3))
trace.check()
print([op.func_name for op in trace.ops], trace.output_layers, trace["output_1"].parents)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['sin', 'mul'] ('output_1',) ('mul_1_2',)", done.stderr[-2000:]
