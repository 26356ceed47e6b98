"""Tensors are found where callers keep them, and nothing else is touched."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import torch

from torchlens.inputs.leaves import argument_leaves, leaves, named_forward

T = torch.zeros(1)


def paths(value):
    return [path for path, _ in leaves(value)]


def test_containers_in_order():
    pair = namedtuple("pair", "x y")

    @dataclass
    class Result:
        logits: torch.Tensor
        extra: object

    assert paths(T) == [""]
    assert paths([T, (T, {"k": T})]) == ["0", "1.0", "1.1.k"]
    assert paths(pair(T, [T])) == ["x", "y.0"]
    assert paths(OrderedDict(b=T, a=T)) == ["b", "a"]
    assert paths(Result(T, {"m": T})) == ["logits", "extra.m"]


def test_objects_by_their_attributes():
    class Box:
        def __init__(self):
            self.a, self._b = T, 3
            self.me = self

    assert paths(Box()) == ["a"]


def test_endless_objects_are_not_iterated():
    class Endless:
        def __getitem__(self, index):
            return T

    assert paths(Endless()) == []


def test_deep_nesting_ends():
    value: object = T
    for _ in range(50):
        value = [value]
    assert paths(value) == []


def test_arguments_take_the_names_of_forward():
    def forward(x, ys, *rest, flag=False, **more):
        pass

    got = argument_leaves(forward, (T, [T, T], T), {"flag": True, "mask": T, "deep": {"k": T}})
    assert [path for path, _ in got] == ["x", "ys.0", "ys.1", "rest.0", "mask", "deep.k"]


def test_arguments_that_do_not_fit_keep_positions():
    def forward(x):
        pass

    assert [p for p, _ in argument_leaves(forward, (T, T), {})] == ["args.0", "args.1"]


def test_wrappers_take_the_names_of_what_they_wrap():
    inner = torch.nn.Linear(2, 2)
    assert named_forward(torch.nn.DataParallel(inner)) == inner.forward
    assert named_forward(inner) == inner.forward
