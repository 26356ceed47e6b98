"""What happens before the recorded run: plain runs that leave no trace, and the seed of its random streams."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from torchlens.base.errors import fail
from torchlens.capture.memory import ModelState, registered_modules, streams_kept
from torchlens.inputs.leaves import leaves

Arguments = tuple[tuple[object, ...], dict[str, object]]
# numpy takes no larger seed.
_NUMPY_SEEDS = 2**32


def warm_up(model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object], runs: int) -> None:
    """Run the model that often without recording it.

    Random streams, parameters, buffers, attributes of the modules and the arguments are as before after each run; what
    a run does beyond these, in a hook or a file, it does. A run that raises ends the warming up: the recorded one will
    tell. Raises InputError[warmup_state_pending] for a model whose lazy parameters or buffers have no shape yet, as
    giving them one could not be taken back.
    """
    if not runs:
        return
    pending = [
        name for _, module in registered_modules(model) for name, tensor in _own_state(module) if is_lazy(tensor)
    ]
    if pending:
        fail("warmup_state_pending", f"{pending[0]!r} has no shape before the first run", name=pending[0])
    state = ModelState(model, [tensor for _, tensor in leaves([args, dict(kwargs)])])
    for _ in range(runs):
        inner, named = _copied(args, kwargs)
        try:
            model(*inner, **named)
        except Exception:  # noqa: BLE001 - the recorded run meets it again
            return
        finally:
            state.restore()


def _own_state(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for store in (module._parameters, module._buffers):
        yield from ((name, tensor) for name, tensor in store.items() if tensor is not None)


def _copied(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Arguments:
    """The arguments with containers and objects of their own, so that a cache among them is not filled by a run.

    Tensors are the caller's, which get their contents back; so is everything of an argument that cannot be copied.
    """
    originals = (args, dict(kwargs))
    shared: dict[int, object] = {id(tensor): tensor for _, tensor in leaves([*originals])}
    try:
        return copy.deepcopy(originals, shared)
    except Exception:  # noqa: BLE001 - copying runs the code of whatever classes the arguments have
        return originals


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed torch, Python and numpy for the body and put their streams back after it; None leaves them alone."""
    if seed is None:
        yield
        return
    with streams_kept():
        torch.manual_seed(seed)
        random.seed(seed)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed % _NUMPY_SEEDS)
        yield
