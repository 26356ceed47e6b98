"""The exported facts follow their schema and survive JSON."""

from __future__ import annotations

import json

import torch

import torchlens as tl
from tests.models import recording as zoo

NODE_KEYS = {
    "label",
    "layer",
    "pass",
    "kind",
    "func",
    "path",
    "parents",
    "outputs",
    "module",
    "params",
    "buffers",
    "inplace",
    "bool_value",
    "value",
    "time_s",
    "flops",
}


def test_schema_keys_and_order():
    facts = tl.trace(zoo.Conv().train(), torch.randn(2, 3, 8, 8)).to_dict()
    assert facts["schema"] == "torchlens_trace_v1"
    assert facts["model"] == {"class": "Conv", "training": True}
    assert set(facts) == {"schema", "model", "nodes", "layers", "modules", "params", "branches", "totals"}
    assert all(set(node) - {"synthetic"} == NODE_KEYS for node in facts["nodes"])
    kinds = [node["kind"] for node in facts["nodes"]]
    assert kinds[0] == "input"
    assert kinds[-1] == "output"
    conv = next(node for node in facts["nodes"] if node["func"] == "conv2d")
    assert conv["parents"] == [["input_1", 0]]
    assert conv["module"] == "features.0:1"
    assert conv["outputs"] == [{"shape": [2, 4, 8, 8], "dtype": "float32", "device": "cpu", "nbytes": 2048}]
    assert conv["flops"] == 2 * (2 * 4 * 8 * 8) * 3 * 9


def test_a_tensor_read_twice_is_listed_twice_and_late_writes_last():
    class Twice(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            y[:, 0].mul_(3)
            return y + y

    nodes = tl.trace(Twice(), torch.ones(2, 2)).to_dict()["nodes"]
    add = next(node for node in nodes if node["func"] == "add")
    assert add["parents"] == [["mul_1_1", 0], ["mul_1_1", 0], ["mul_2_3", 0], ["mul_2_3", 0]]


def test_json_is_valid_and_whole(tmp_path):
    class Odd(torch.nn.Module):
        def forward(self, x):
            return x.sum() / 0, x.mean() > 0

    trace = tl.trace(Odd(), torch.ones(2))
    path = trace.to_json(tmp_path / "trace.json")
    facts = json.loads(path.read_text())
    values = {node["label"]: (node["value"], node["bool_value"]) for node in facts["nodes"] if node["kind"] == "op"}
    assert values["div_1_2"] == ("inf", None)
    assert values["gt_1_4"] == (True, True)
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


def test_networkx_holds_every_node_and_arrow():
    trace = tl.trace(zoo.Loop(), torch.randn(2, 4))
    graph, facts = trace.to_networkx(), trace.to_dict()
    assert list(graph) == [node["label"] for node in facts["nodes"]]
    assert graph.number_of_edges() == sum(len(node["parents"]) for node in facts["nodes"])
    assert graph.nodes["tanh_1_5:1"]["func"] == "tanh"
