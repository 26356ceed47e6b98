"""Random modules: small programs as source text, over tensors of one shape, so that any statement fits any other.

`programs()` draws them; `Program.module()` builds one. Every variable is a float tensor of shape (3, 4) at every line,
bodies of loops and branches only assign variables that exist, so a program fails only where autograd forbids a write.
"""

from __future__ import annotations

import itertools
import linecache
import types
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

_COUNT = itertools.count()


class Twice(torch.autograd.Function):
    """A function with its own gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 2 + x.abs()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Inner(nn.Module):
    """A module with state, a residual and a shared activation."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), act
        self.register_buffer("gain", torch.ones(4))

    def forward(self, x):
        return x + self.act(self.lin(x)) * self.gain


class Base(nn.Module):
    """What the programs find in `self`."""

    def __init__(self) -> None:
        super().__init__()
        self.lin, self.act, self.quiet = nn.Linear(4, 4), nn.ReLU(), nn.Identity()
        self.hasty = nn.ReLU(inplace=True)
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
        self.inner = Inner(self.act)
        self.tower = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), self.lin)
        self.cell, self.lstm = nn.GRUCell(4, 4), nn.LSTM(4, 4, batch_first=True)
        self.embed = nn.Embedding(4, 4)
        self.embed.weight = self.lin.weight
        self.scale = nn.Parameter(torch.tensor([1.0, 0.5, 2.0, -1.0]))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("memory", torch.zeros(3, 4))
        self.const = torch.linspace(-1, 1, 4)
        self.loose = [nn.Linear(4, 4)]


# {a}, {b}, {c}: variables that are read or written; {n}: the variable that is assigned.
STATEMENTS = tuple(
    line
    for line in """
# elementwise, reductions, matrix products
{n} = torch.sin({a})
{n} = {a}.tanh()
{n} = -{a}
{n} = {a} * 2
{n} = 1 - {a}
{n} = {a} ** 2
{n} = {a} + {b}
{n} = {a} - {b}
{n} = {a} * {b}
{n} = torch.maximum({a}, {b})
{n} = torch.where({a} > 0, {b}, {c})
{n} = {a}.softmax(-1)
{n} = F.gelu({a})
{n} = {a}.clamp(-1, 1)
{n} = F.layer_norm({a}, (4,))
{n} = {a} - {b}.mean()
{n} = {a} / ({b}.norm() + 1)
{n} = {a}.sum(0, keepdim=True) + {b}
{n} = {a} @ {b}.T @ {c}
{n} = torch.einsum('ij,kj,kl->il', {a}, {b}, {c})
{n} = torch.cumsum({a}, 1)
{n} = {a}.masked_fill({b} > 0, 0.5)
{n} = ({a} > {b}).float() + {c}
# views and copies
{n} = {a}.view(3, 4)
{n} = {a}[:]
{n} = {a}.T.T
{n} = {a}.detach()
{n} = {a}.reshape(-1).view(3, 4)
{n} = {a}.clone()
{n} = {a}.contiguous()
{n} = {a}.unsqueeze(0).squeeze(0)
{n} = {a}.flip(0)
{n} = {a}[:1].expand(3, 4)
{n} = {a}[[2, 0, 1]]
{n} = {a}.T.contiguous().T
{n} = {a}.data
{n} = {a}.as_strided((3, 4), (4, 1))
{n} = {a}.to(torch.float64).float()
{n} = {a}
# in place, also through views
{a}.mul_(2)
{a}.add_({b})
{a} += {b}
{a} *= 0.5
{a}.relu_()
F.relu({a}, inplace=True)
{a}.zero_()
{a}.copy_({b})
{a}[1] = {b}[0]
{a}[:, 1:3] = {b}[:, :2]
{a}[{b} > 0] = 0
{a}[0].add_(1)
{a}[:, 0].mul_({b}[:, 1])
{a}.view(-1)[2:5].fill_(3)
{a}.T[1].sub_({b}[0, 0])
{a}.clamp_(-1, 1)
{a}.data.mul_(2)
{a}.detach().add_(1)
{a}.masked_fill_({b} > 0, -1)
{a}.index_add_(0, torch.tensor([0, 2]), {b}[:2])
torch._foreach_mul_([{a}, {b}], 2.0)
{n} = torch.add({a}, {b}, out=torch.empty(3, 4))
{a}.requires_grad
{a}.diagonal().add_(1)
{a}[1:].add_({a}[:-1].clone())
{a}.data = {b}.clone()
{n} = {a}[:]; {n}.add_(1)
{n} = {a}.view(3, 4); {a}.mul_(3)
# several outputs
p, q = {a}.split(2, dim=1); {n} = torch.cat([q, p], 1)
p, q = {a}.chunk(2, 1); p.mul_(2); {n} = torch.cat([p, q], 1)
v, i = {a}.max(1); {n} = {b} + v[:, None] * i[:, None]
v, i = {a}.sort(1); {n} = v
p, q, r = {a}.unbind(0); {n} = torch.stack([r, p, q])
v, i = {a}.topk(2, 1); {n} = {b}.scatter(1, i, v)
p, q, r = {a}; {n} = torch.stack([q, q, r])
{n} = torch.cat([{a}, {b}])[2:5]
{n} = torch.stack([{a}, {b}, {c}]).mean(0)
# modules and parameters
{n} = self.lin({a})
{n} = self.norm({a})
{n} = self.drop({a})
{n} = self.inner({a})
{n} = self.tower({a})
{n} = self.act({a})
{n} = self.hasty({a})
{n} = self.quiet({a})
{n} = self.cell({a}, {b})
{n} = self.lstm({a}[None])[0][0]
{n} = self.embed({a}.argmax(1))
{n} = F.linear({a}, self.lin.weight)
{n} = {a} * self.scale
{n} = self.loose[0]({a})
{n} = self.lin.forward({a})
{n} = {a} @ self.embed.weight
{n} = F.linear({a}, self.lin.weight * 2, self.lin.bias)
# state
self.count.add_(1)
self.count += {a}.mean().detach()
{n} = {a} + self.count
self.memory.copy_({a}.detach())
{n} = {a} - self.memory
self.memory = self.memory * 0.5 + {a}.detach()
self.memory[1] = {a}[2].detach()
{n} = {a} * self.const
self.kept = {a}; {n} = self.kept + 1
# random streams, constants, values that leave and come back
{n} = {a} + torch.randn_like({a})
{n} = F.dropout({a}, 0.3, True)
{n} = {a}[torch.randperm(3)]
{n} = torch.zeros(3, 4)
{n} = torch.ones_like({a})
{n} = {a} + torch.arange(4.0)
{n} = {a} * torch.tensor(1.5)
{n} = torch.full((3, 4), 0.5)
{n} = {a} * float({b}[0, 0].item() > 0)
{n} = {a}.roll(int({b}.argmax()) % 3, 0)
{n} = torch.rand(3, 4)
{n} = torch.empty(3, 4).fill_(1) + {a}
{n} = torch.bernoulli({a}.sigmoid())
# transforms and functions with their own gradient
{n} = Twice.apply({a})
{n} = checkpoint(self.inner, {a}, use_reentrant=False)
{n} = torch.vmap(torch.sin)({a})
{n} = F.interpolate({a}[None], scale_factor=2.0)[0][:, ::2]
{n} = F.scaled_dot_product_attention({a}[None], {b}[None], {c}[None])[0]
{n} = F.max_pool1d({a}, 3, 1, 1)
{n} = F.normalize({a})
{n} = F.embedding(torch.tensor([0, 1, 0]), {a})
""".splitlines()
    if line and not line.startswith("#")
)
BLOCKS = (
    "for _ in range(2):", "for _ in range(3):", "if {a}.mean() > 0:", "if ({a} > 0).any() and {b}.sum() < 1:",
    "with torch.no_grad():", "with torch.no_grad():", "if not {a}[0, 0] > 0:", "for row in {a}:",
)  # fmt: skip
RESULTS = (
    "{a}", "({a}, {b})", "{{'a': {a}, 'rest': [{b}, {a}]}}", "({a}, x)", "[{a} + 1, self.memory]", "({a}, self.scale)",
    "{a}[0]", "({a}, None, {b}[:, 0])",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Source of a forward, and the modes that it runs in."""

    source: str
    train: bool
    grad: bool
    inference: bool = False

    def module(self) -> nn.Module:
        """A new module with this forward, seeded."""
        torch.manual_seed(0)
        model = Base().train(self.train)
        name = f"<program {next(_COUNT)}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        scope = {"torch": torch, "F": F, "checkpoint": checkpoint, "Twice": Twice}
        exec(compile(self.source, name, "exec"), scope)
        model.forward = types.MethodType(scope["forward"], model)
        return model

    def inputs(self) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(1)
        return torch.randn(3, 4), torch.randn(3, 4)

    def __str__(self) -> str:
        return f"{self.source}# train={self.train} grad={self.grad} inference={self.inference}"


@st.composite
def programs(draw: st.DrawFn, most: int = 10) -> Program:
    """A program of some statements, blocks among them."""
    names = ["x", "y"]
    lines: list[str] = []
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 5)) == 5:
            lines.append(_fill(draw, draw(st.sampled_from(BLOCKS)), names))
            body = [
                "    " + _fill(draw, draw(st.sampled_from(STATEMENTS)), names, fresh=False)
                for _ in range(draw(st.integers(1, 2)))
            ]
            lines += body
            if lines[-len(body) - 1].startswith("if") and draw(st.booleans()):
                lines += ["else:", "    " + _fill(draw, draw(st.sampled_from(STATEMENTS)), names, fresh=False)]
        else:
            lines.append(_fill(draw, draw(st.sampled_from(STATEMENTS)), names))
    lines.append("return " + _fill(draw, draw(st.sampled_from(RESULTS)), names))
    body = "".join(f"    {line}\n" for line in lines)
    grad = draw(st.booleans())
    return Program(f"def forward(self, x, y):\n{body}", draw(st.booleans()), grad, not grad and draw(st.booleans()))


def _fill(draw: st.DrawFn, template: str, names: list[str], *, fresh: bool = True) -> str:
    """The template with variables; the assigned one may be new where that is allowed."""
    chosen = {key: draw(st.sampled_from(names)) for key in "abc" if "{" + key + "}" in template}
    if "{n}" in template:
        new = f"t{len(names) - 1}"
        chosen["n"] = draw(st.sampled_from([*names, new] if fresh else names))
        if chosen["n"] == new:
            names.append(new)
    return template.format(**chosen)
