"""Naming rules: `<op>_<n>_<step>`, `relu_1_2:2`, `input_1`. The drawn name is exactly the lookup key."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

# Operators whose reflected form does the same work carry the name of the plain form; the others keep their own.
_COMMUTED = {"radd": "add", "rmul": "mul", "rand": "and", "ror": "or", "rxor": "xor"}


@lru_cache(maxsize=4096)
def op_type(func_name: str) -> str:
    """The op part of a label: lower case, without underscores, dunder marks or the in-place mark.

    Example: op_type("relu_") == "relu"; op_type("__iadd__") == "iadd"; op_type("max_pool2d") == "maxpool2d".
    """
    bare = func_name.strip("_").lower()
    dunder = func_name.startswith("__") and func_name.endswith("__")
    name = bare.replace("_", "")
    return _COMMUTED.get(name, name) if dunder else name


class Namer:
    """Hands out layer labels in order of first execution.

    n counts layers of one op type, step layers of any type; inputs, outputs, buffers and constants are numbered on
    their own, without a step.
    """

    def __init__(self) -> None:
        self._per_type: Counter[str] = Counter()
        self._step = 0

    def next(self, type_name: str, *, stepped: bool = True) -> tuple[str, int, int | None]:
        """The next label of this type with its n and step."""
        self._per_type[type_name] += 1
        n = self._per_type[type_name]
        if not stepped:
            return f"{type_name}_{n}", n, None
        self._step += 1
        return f"{type_name}_{n}_{self._step}", n, self._step


def pass_label(layer_label: str, pass_number: int, num_passes: int) -> str:
    """Name of one pass: the layer's own label if it ran once, else `relu_1_2:2`."""
    return layer_label if num_passes == 1 else f"{layer_label}:{pass_number}"


def split_pass(label: str) -> tuple[str, int | None]:
    """Layer label and pass number of a name; None if the name carries no pass."""
    head, _, tail = label.rpartition(":")
    return (head, int(tail)) if head and tail.isdigit() else (label, None)


def call_key(address: str, number: int) -> str:
    """Key of one module call, `features.0:1`; the root's own is `self:1`."""
    return f"{address or 'self'}:{number}"
