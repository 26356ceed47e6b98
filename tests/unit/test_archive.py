"""A saved trace is the trace: same facts, same figures byte by byte, same values and refusals; or it is refused."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import warnings
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import torchlens as tl
from tests.models import recording as models
from tests.oracle.facts import RECORDS
from tests.oracle.zoo import build_model, make_inputs
from torchlens import archive
from torchlens.base.errors import LoadError, TorchLensError

VIEWS = ({}, {"rolled": True}, {"view": "speed"})


class Run(nn.Module):
    """A model whose forward is the function."""

    def __init__(self, forward):
        super().__init__()
        self.run = forward

    def forward(self, *args):
        return self.run(*args)


def trace_of(forward, *args, **options) -> tl.Trace:
    return tl.trace(Run(forward), args, **options)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run.trace"


def reload(trace: tl.Trace, path: Path) -> tl.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trace.save(path) == path
        return tl.load(path)


def refusal(action, *args) -> str:
    with pytest.raises(TorchLensError) as caught:
        action(*args)
    return caught.value.code


def attempt(action, *args, **options) -> tuple[object, str]:
    """What a call gives, and the code of its refusal."""
    try:
        return action(*args, **options), ""
    except TorchLensError as error:
        return None, error.code


def assert_same_value(a: object, b: object) -> None:
    if isinstance(a, torch.Tensor):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        # A value that is conjugate or negative by a flag alone is copied.
        assert a.stride() == b.stride() or a.is_conj() or a.is_neg()
        assert not b.requires_grad
        assert torch.equal(a.resolve_conj().resolve_neg(), b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same_value(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        assert isinstance(b, list) == isinstance(a, list)
        for one, other in zip(a, b, strict=True):
            assert_same_value(one, other)
    else:
        assert a == b


def assert_same_values(trace: tl.Trace, back: tl.Trace) -> int:
    """Every value or refusal of one is that of the other; gives the number of values."""
    count = 0
    for index in range(len(trace.data.nodes)):
        value, code = attempt(trace.value, index)
        read, reason = attempt(back.value, index)
        assert code == reason
        if not code:
            count += 1
            assert_same_value(value, read)
    return count


def assert_same_figures(trace: tl.Trace, back: tl.Trace, *options: dict) -> None:
    for one in options:
        drawing, code = attempt(trace.draw, **one, file_format="dot")
        again, reason = attempt(back.draw, **one, file_format="dot")
        assert code == reason
        assert code or drawing.data == again.data


@pytest.mark.parametrize("record", [r for r in RECORDS if r["family"] == "zoo"], ids=lambda record: record["key"])
@pytest.mark.filterwarnings("ignore:.batchnorm_train_stats_mutated")
def test_every_small_model_comes_back(record, path):
    args, kwargs = make_inputs(record)
    trace = tl.trace(build_model(record), args, input_kwargs=kwargs)
    back = reload(trace, path)
    back.check()
    assert back.to_dict() == trace.to_dict()
    assert_same_figures(trace, back, *VIEWS)
    assert assert_same_values(trace, back) > 0
    assert (back.outcome, back.provenance, back.data.environment) == (
        trace.outcome, trace.provenance, trace.data.environment,
    )  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"view": "speed", "theme": "dark"}, {"depth": 1, "direction": "leftright"}])
def test_a_loaded_trace_draws_the_same_picture(options, path):
    trace = tl.trace(models.Conv().eval(), torch.randn(2, 3, 8, 8), save="none")
    back = reload(trace, path)
    assert back.draw(**options, file_format="svg").data == trace.draw(**options, file_format="svg").data


def test_a_trace_of_facts_alone_needs_no_torch_to_be_drawn(path):
    trace = tl.trace(nn.Sequential(nn.Linear(8, 4), nn.ReLU()), input_shape=(2, 8), save="none")
    trace.save(path)
    code = f"""
import sys, torchlens
light = not {{"torch", "numpy", "safetensors"}} & set(sys.modules)
back = torchlens.load({str(path)!r})
text = back.draw(file_format="dot").dot
print(light, "torch" in sys.modules, back.provenance.origin, back.result)
sys.stdout.write(text)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    head, _, text = done.stdout.partition("\n")
    assert head == f"True False {trace.provenance.origin} None"
    assert text == trace.draw(file_format="dot").dot
    assert refusal(tl.load(path).value, 0) == "payload_unavailable"


def test_the_partial_trace_of_a_forward_that_raised(path):
    def forward(x):
        y = x.relu()
        raise ValueError(f"no more after {y.shape}")

    with pytest.raises(ValueError, match="no more") as caught:
        trace_of(forward, torch.randn(3))
    trace = caught.value.partial_trace
    back = reload(trace, path)
    assert back.outcome == trace.outcome
    assert not back.outcome.completed
    assert back.result is None
    assert assert_same_values(trace, back) == 2
    assert_same_figures(trace, back, *VIEWS)


def test_what_was_measured_and_which_values_were_kept_come_back(path):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    capture = {"out_stats": True, "saved_for_backward": True}
    trace = tl.trace(model, torch.randn(2, 8), save=["relu_1_2"], capture=capture)
    back = reload(trace, path)
    assert assert_same_values(trace, back) == 1
    assert back.totals == trace.totals
    assert back.totals["autograd_bytes"] > 0
    for index in range(len(trace.nodes)):
        assert back.stats_of(index) == trace.stats_of(index) is not None


def test_statistics_of_kept_values_are_taken_after_loading(path):
    trace = trace_of(lambda x: x / 0, torch.tensor([1.0, -1.0, 0.0]))
    back = reload(trace, path)
    (stats,) = back.stats_of(back.ops[0].index)
    assert (stats.n_posinf, stats.n_neginf, stats.n_nan) == (1, 1, 1)
    back.ops[0].out.zero_()
    assert back.stats_of(back.ops[0].index) is None


def test_branches_come_back_without_their_sources(path):
    def forward(x):
        if x.sum() > 0 and not x.isnan().any():
            return x * 2
        return x

    trace = trace_of(forward, torch.ones(3))
    back = reload(trace, path)
    assert list(back.data.branches) == list(trace.data.branches) != []
    assert back.data.branches.arms == trace.data.branches.arms
    assert back.orphans == trace.orphans


# -- values

Pair = namedtuple("Pair", ["left", "right"])


def views(x):
    base = x.reshape(4, 6)
    parts = base.t(), base[1:3, ::2], base[3], base.flatten()[2:2], base.expand(2, 4, 6), base.diagonal()
    return [part + 0 for part in parts]


def dtypes(x):
    kinds = ["float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64",
             "complex128", "float8_e4m3fn", "uint16", "uint32"]  # fmt: skip
    return [x.to(getattr(torch, kind)) for kind in kinds]


def structures(x):
    best = x.reshape(4, 6).max(dim=1)
    return {"best": best, "pair": Pair(best.values, [x.chunk(2), None, 3, "text"]), 5: (x.sum(), torch.empty(0, 3))}


def reinterpreted(x):
    kept = x.view(torch.int32) & 1
    tail = x[1:].view(torch.uint8)[3:9] + 0
    flipped = torch.fft.fft(x).conj()
    return kept, tail, flipped, flipped.imag, flipped.real


@pytest.mark.parametrize("forward", [views, dtypes, structures, reinterpreted], ids=lambda f: f.__name__)
def test_values_and_results_come_back(forward, path):
    trace = trace_of(forward, torch.randn(24))
    back = reload(trace, path)
    assert assert_same_values(trace, back) == len(trace.nodes)
    assert_same_value(trace.result, back.result)


def test_a_structure_keeps_its_types(path):
    trace = trace_of(structures, torch.randn(24))
    back = reload(trace, path)
    assert type(back.result["best"]) is torch.return_types.max
    assert type(trace["max_1_2"].out) is type(back["max_1_2"].out) is torch.return_types.max
    assert back.result["pair"].left.shape == (4,)
    assert type(back.result["pair"]).__name__ == "Pair"
    assert type(back.result["pair"].right[0]) is tuple


def test_a_complex_value_is_stored_as_two_parts(path):
    trace = trace_of(torch.fft.fft, torch.randn(5))
    back = reload(trace, path)
    (label,) = [op.label for op in trace.ops]
    with safe_open(path, "pt") as file:
        stored = file.get_tensor(label)
    assert torch.equal(stored, torch.view_as_real(trace[label].out))
    assert torch.equal(back[label].out, trace[label].out)


def test_shared_memory_is_stored_once_and_stays_shared(path):
    def forward(x):
        y = x * 2
        return y.view(1000, 1000).t().reshape(1000, 1000)[:10], y[5:], y.reshape(-1)

    trace = trace_of(forward, torch.randn(1_000_000))
    back = reload(trace, path)
    assert_same_values(trace, back)
    # The input, its double, and the transposed copy.
    assert path.stat().st_size < 3 * 4_000_000 + 50_000
    with safe_open(path, "pt") as file:
        assert torch.equal(file.get_tensor("mul_1_1"), trace["mul_1_1"].out)
    out = back["mul_1_1"].out
    assert out.untyped_storage().data_ptr() == back.result[1].untyped_storage().data_ptr()


def test_a_value_that_is_written_after_loading_is_refused(path):
    trace = trace_of(lambda x: (x * 2).view(2, 3), torch.randn(6))
    back = reload(trace, path)
    assert back["mul_1_1"].out is back["mul_1_1"].out
    back["view_1_2"].out.zero_()
    assert refusal(lambda: back["view_1_2"].out) == "payload_overwritten"
    again = tl.load(path)
    assert torch.equal(again["view_1_2"].out, trace["view_1_2"].out)


def test_an_overwritten_value_stays_refused(path):
    def forward(x):
        y = x * 2
        return y, y.detach()

    trace = trace_of(forward, torch.ones(3))
    trace.result[0].add_(1)
    assert refusal(lambda: trace["mul_1_1"].out) == "payload_overwritten"
    back = reload(trace, path)
    assert refusal(lambda: back["mul_1_1"].out) == "payload_overwritten"
    assert back.result[0].tolist() == [3, 3, 3]


def test_values_do_not_depend_on_modes_that_are_on(path):
    trace = trace_of(lambda x: x * 2, torch.randn(3))
    with torch.device("meta"), torch.inference_mode():
        back = reload(trace, path)
        out = back["mul_1_1"].out
    assert out.device.type == "cpu"
    assert not out.is_inference()
    assert torch.equal(out, trace["mul_1_1"].out)


def test_what_a_file_cannot_hold_is_named(path):
    class Own(torch.Tensor):
        pass

    def forward(x):
        return x.to_sparse(), x.as_subclass(Own), x + 1

    trace = trace_of(forward, torch.eye(3))
    trace.annotations.update(kept=[1, (2,)], model=nn.ReLU())
    with pytest.warns(tl.TorchLensWarning, match="save_incomplete") as heard:
        trace.save(path)
    (warning,) = [entry.message for entry in heard]
    assert "annotations['model']" in str(warning)
    assert "sparse" in str(warning)
    assert "Own" in str(warning)
    back = tl.load(path)
    assert back.annotations["kept"] == [1, (2,)]
    assert "model" not in back.annotations
    assert torch.equal(back.ops[-1].out, torch.eye(3) + 1)
    assert refusal(lambda: back["tosparse_1_1"].out) == "payload_unavailable"
    assert back.result is None
    assert_same_figures(trace, back, *VIEWS)


ODD = {
    "sparse": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "nested": lambda x: torch.nested.as_nested_tensor([x[0], x[1, :2]]),
    "meta": lambda x: x.to("meta"),
    "mapped": torch.vmap(lambda row: row.sin().sum()),
    "differentiated": torch.func.grad(lambda y: (y * y).sum()),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore:.save_incomplete", "ignore:Sparse", "ignore:The PyTorch API of nested")
def test_odd_tensors_never_stop_a_save(name, path):
    trace = trace_of(lambda x: (ODD[name](x), x.exp()), torch.rand(3, 3))
    trace.save(path)
    back = tl.load(path)
    assert back.to_dict() == trace.to_dict()
    assert torch.equal(back.ops[-1].out, trace.ops[-1].out)
    for index in range(len(trace.nodes)):
        value, code = attempt(back.value, index)
        assert code in ("", "payload_unavailable")
        assert code or torch.equal(value, trace.value(index))


def test_a_result_of_a_class_of_its_own_is_left_out(path):
    class Output:
        def __init__(self, value):
            self.value = value

    back = reload(trace_of(lambda x: Output(x + 1), torch.randn(3)), path)
    assert back.result is None
    assert back.ops[0].out.shape == (3,)


def test_a_loaded_trace_can_be_saved_over_its_own_file(path):
    trace = trace_of(views, torch.randn(24))
    back = reload(trace, path)
    first = path.read_bytes()
    again = reload(back, path)
    assert path.read_bytes() == first
    assert assert_same_values(trace, again) == len(trace.nodes)


def test_more_values_than_a_header_can_list(path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_HEADER", 200)
    trace = trace_of(lambda x: x + 1, torch.randn(3))
    with pytest.raises(ValueError, match="save_too_large"):
        trace.save(path)
    assert not path.exists()


# -- files


@pytest.fixture
def saved(path) -> Path:
    trace_of(lambda x: (x + 1).relu(), torch.randn(4)).save(path)
    return path


def test_the_file_is_safetensors_and_json(saved):
    with safe_open(saved, "pt") as file:
        assert set(file.keys()) == {"records", "input_1", "add_1_1", "relu_1_2"}
        assert file.metadata()["schema"] == "1"
        document = json.loads(bytes(file.get_tensor("records").numpy()))
    assert document["fields"]["model_class"] == "Run"
    raw = saved.read_bytes()
    assert (8 + int.from_bytes(raw[:8], "little")) % 64 == 0


@pytest.mark.parametrize("keep", [0, 7, 8, 100, 0.3, 0.6, 0.95, -1])
def test_a_file_that_is_cut_off_is_refused(keep, saved):
    raw = saved.read_bytes()
    saved.write_bytes(raw[: int(keep * len(raw)) if isinstance(keep, float) else keep])
    with pytest.raises(OSError, match="load_file_invalid"):
        tl.load(saved)


@pytest.mark.parametrize("raw", [b"%PDF-1.7 and so on and on", b"{}", b"\x02\0\0\0\0\0\0\0{}", b"PK\x03\x04" * 90])
def test_a_foreign_file_is_refused(raw, path):
    path.write_bytes(raw)
    with pytest.raises(LoadError, match="load_file_invalid") as caught:
        tl.load(path)
    assert str(path) in str(caught.value)


def test_tensors_of_something_else_are_refused(path):
    save_file({"records": torch.zeros(3)}, path)
    assert refusal(tl.load, path) == "load_file_invalid"


def rewritten(path: Path, change) -> None:
    """The file with its header changed."""
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[end:])


def test_the_file_of_a_newer_version_is_refused(saved):
    rewritten(saved, lambda header: header["__metadata__"].update(schema="2"))
    with pytest.raises(OSError, match="load_schema_unknown"):
        tl.load(saved)


@pytest.mark.parametrize("schema", ["", "one", "-1"])
def test_a_schema_that_is_no_number_is_refused(schema, saved):
    rewritten(saved, lambda header: header["__metadata__"].update(schema=schema))
    assert refusal(tl.load, saved) == "load_file_invalid"


def test_records_that_were_changed_are_refused(saved):
    raw = saved.read_bytes()
    saved.write_bytes(raw.replace(b'"Run"', b'"Ran"'))
    with pytest.raises(OSError, match="changed after saving"):
        tl.load(saved)


@pytest.mark.parametrize("document", ["[]", "{}", "{", '{"types": [], "fields": {}}', '{"types": [["os", []]]}'])
def test_records_that_are_no_trace_are_refused(document, path):
    header = archive._header(document.encode(), [])
    path.write_bytes(header + document.encode())
    assert refusal(tl.load, path) == "load_file_invalid"


def test_a_view_outside_its_range_is_refused(path):
    trace_of(lambda x: x[1:3].sum(), torch.randn(5)).save(path)
    raw = path.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    size = json.loads(raw[8:end])["records"]["shape"][0]
    document = json.loads(raw[end : end + size])
    (view,) = [view for view in document["views"] if len(view) > 1]
    view[2] = [9]  # one digit, so that the document keeps its length
    records = json.dumps(document, separators=(",", ":")).encode().ljust(size)
    assert len(records) == size
    path.write_bytes(raw[:end] + records + raw[end + size :])
    digest = hashlib.blake2b(records, digest_size=16).hexdigest()
    rewritten(path, lambda header: header["__metadata__"].update(records=digest))
    back = tl.load(path)
    assert refusal(lambda: back["getitem_1_1"].out) == "load_file_invalid"
    assert back["sum_1_2"].out.shape == ()


def test_a_missing_file_a_folder_and_no_path(tmp_path):
    for wrong in (tmp_path / "none", tmp_path, "a\0b"):
        with pytest.raises(OSError, match="load_file_missing"):
            tl.load(wrong)
    with pytest.raises(TypeError):
        tl.load(None)


def test_a_place_that_cannot_be_written(tmp_path):
    trace = trace_of(lambda x: x + 1, torch.randn(3), save="none")
    for wrong in (tmp_path / "none" / "x", tmp_path, "a\0b", None):
        with pytest.raises(ValueError, match="output_path_invalid"):
            trace.save(wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_save_that_fails_leaves_the_old_file(step, saved, monkeypatch):
    before = saved.read_bytes()

    def broken(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), broken)
    with pytest.raises(ValueError, match="No space left"):
        trace_of(lambda x: x * 3, torch.randn(3)).save(saved)
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system cannot kill")
def test_a_save_that_is_killed_leaves_the_old_file(saved):
    before = saved.read_bytes()
    code = f"""
import os, signal, torch, torchlens
from torchlens import stored_values
trace = torchlens.trace(torch.nn.Linear(64, 64), torch.randn(64, 64))
def read(self, plain=stored_values.Range.read):
    if self.key.startswith("linear"):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(self)
stored_values.Range.read = read
trace.save({str(saved)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert saved.read_bytes() == before
    assert tl.load(saved)["relu_1_2"].out.shape == (4,)


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege")
def test_links_and_permissions_stay(saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    saved.chmod(0o640)
    trace_of(lambda x: x * 3, torch.randn(3)).save(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o640
    assert tl.load(saved).ops[0].func_name == "mul"
