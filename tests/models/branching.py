"""Small modules that let a tensor decide what runs, one form of test each. Line numbers come from the source itself."""

# ruff: noqa: SIM102, PLW0120, FURB192, C419 - what is tested is how it is written
from __future__ import annotations

import torch
from torch import nn


class Form(nn.Module):
    """A module whose forward is one of the functions below."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def plain_if(x):
    if x.sum() > 0:
        y = torch.relu(x)
        y = torch.exp(y)
    else:
        y = torch.tanh(x)
    return y + 1


def if_without_else(x):
    if x.sum() > 0:
        x = torch.relu(x)
    return torch.exp(x)


def chain(x):
    m = x.sum()
    if m > 5:
        y = torch.relu(x)
    elif (m * 2) > 5:
        y = torch.tanh(x)
    elif m > 0:
        y = torch.exp(x)
    else:
        y = torch.sin(x)
    return y


def else_then_if(x):
    m = x.sum()
    if m > 5:
        y = torch.relu(x)
    else:
        if m > 0:
            y = torch.exp(x)
        else:
            y = torch.sin(x)
    return y


def nested(x):
    if x.sum() > 0:
        x = x * 2
        if x.max() > 100:
            x = torch.relu(x)
        else:
            x = torch.exp(x)
    return x


def nested_at_once(x):
    if x.sum() > 0:
        if (x * 3).max() > 0:
            return torch.relu(x)
    return x


def while_loop(x):
    while x.abs().max() > 1:
        x = x * 0.5
    else:
        x = torch.sin(x)
    return x


def ternary(x):
    return torch.relu(x) if x.sum() > 0 else torch.tanh(x)


def ternary_in_lambda(x):
    return (lambda t: torch.relu(t) if t.sum() > 0 else torch.tanh(t))(x)


def ternary_of_ternary(x):
    return torch.relu(x) if x.sum() > 5 else torch.exp(x) if x.sum() > 0 else torch.tanh(x)


def asserted(x):
    assert x.sum() > -1000, "too small"
    return torch.relu(x)


def list_filter(x):
    return torch.stack([torch.relu(row) for row in x.unbind() if row.sum() > 0 if row.max() < 100])


def generator_filter(x):
    return sum(torch.relu(row) for row in x.unbind() if row.sum() > 0)


def match_guard(x):
    match x.dim():
        case 1 if x.sum() > 0:
            return torch.sin(x)
        case 2 if x.sum() > 5:
            return torch.relu(x)
        case 2 if x.sum() > 0:
            return torch.exp(x)
    return x


def stored(x):
    flags = [bool(x.sum() > 0)]
    return x + len(flags)


def returned(x):
    def positive(t):
        return bool(t.sum() > 0)

    return torch.relu(x) if positive(x) else torch.tanh(x)


def by_max(x):
    return torch.relu(max(x.sum(), x.max()))


def by_sorted(x):
    return sorted(x.unbind(), key=lambda row: row.sum())[0]


def conjunction(x):
    if x.sum() > 0 and x.max() > 100:
        return torch.relu(x)
    else:
        return torch.tanh(x)


def disjunction(x):
    if x.sum() > 100 or not x.max() > 100:
        return torch.relu(x)
    else:
        return torch.tanh(x)


def conjunction_with_python(x):
    if x.sum() > 0 and len(x) > 100:
        y = torch.relu(x)
    else:
        y = torch.tanh(x)
    return y


def negation(x):
    if not x.sum() > 0:
        return torch.relu(x)
    else:
        return torch.tanh(x)


def chained_comparison(x):
    if -100 < x.sum() < 100:
        return torch.relu(x)
    return x


def wrapped_bool(x):
    if bool((x > 0).all()):
        return torch.relu(x)
    return x


def builtin_any(x):
    if any(row.sum() > 3 for row in x):
        return torch.relu(x)
    return x


def builtin_all(x):
    if all([bool(row.sum() > 0) for row in x]):
        return torch.relu(x)
    return x


def any_of_list(x):
    if any([bool(x.sum() > 0), bool(x.sum() > 100)]):
        return torch.relu(x)
    return x


def not_any_in_loop(x):
    for _ in range(2):
        x = x - 3
        if not any(row.sum() > 0 for row in x):
            x = torch.relu(x)
        else:
            x = torch.tanh(x)
    return x


def flag(x):
    positive = bool(x.sum() > 0)
    y = torch.sin(x)
    if positive:
        y = torch.relu(y)
    return y


def flag_of_and(x):
    both = bool(x.sum() > 0) and bool(x.max() > 100)
    if not both:
        return torch.relu(x)
    return x


def two_flags(x):
    second = bool(x.sum() > 0)
    first = bool(x.sum() > 100)
    if first:
        return torch.relu(x)
    elif second:
        return torch.exp(x)
    return x


def flag_written_twice(x):
    positive = bool(x.sum() > 0)
    if len(x) > 100:
        positive = False
    if positive:
        x = torch.relu(x)
    return x


def flag_used_in_loop(x):
    positive = bool(x.sum() > 0)
    for _ in range(2):
        x = torch.sin(x)
        if positive:
            x = torch.relu(x)
    return x


def walrus(x):
    if (positive := x.sum() > 0).all():
        return torch.relu(x) * positive
    return x


def walrus_itself(x):
    if positive := x.sum() > 0:
        return torch.relu(x) * positive
    return x


def multi_line(x):
    if (
        x.sum() > 0
        and x
        .max()
        .le(100)
    ):  # fmt: skip
        return torch.relu(
            x
        )  # fmt: skip
    return x


def contained(x):
    if x.sum() in [x.max(), x.sum()]:
        return torch.relu(x)
    return x


def helper_twice(x):
    def step(t):
        if t.sum() > 0:
            return torch.relu(t - 5)
        else:
            return torch.exp(t)

    return step(step(x))


def helper_in_loop(x):
    def step(t):
        if t.sum() > 0:
            return t - 5
        else:
            return t + 1

    for _ in range(3):
        x = step(x)
    return x


def recursion(x, depth=2):
    if x.sum() > 0:
        x = torch.relu(x)
        return recursion(x - 1, depth - 1) if depth else x
    return x


def generator(x):
    def parts(t):
        if t.sum() > 0:
            yield t + 1
            yield t * 2

    it = parts(x)
    first = next(it)
    second = next(it)
    return first - second


def elif_by_python(x):
    m = x.sum()
    if m > 100:
        y = torch.relu(x)
    elif len(x) == 2:
        y = torch.exp(x)
    else:
        y = torch.sin(x)
    return y


def buffer_free_constant(x):
    if x.sum() > 0:
        y = x + torch.ones(())
    else:
        y = x
    return y


def read_as_number(x):
    n = torch.tensor(3.0).item()
    return x + n


class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            y = self.fc(x)
        else:
            y = torch.tanh(x)
        return y


class TwoOfAClass(nn.Module):
    """Two instances answer the same line of source differently."""

    def __init__(self):
        super().__init__()
        self.a, self.b = Child(), Child()

    def forward(self, x):
        return self.a(x.abs()), self.b(-x.abs())


class ModuleInArm(nn.Module):
    """A module called in an arm: its ops are in the arm."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        if x.sum() > 0:
            x = self.body(x)
        return torch.exp(x)
