"""Where a call was made: cheap frame references while recording, file and line only when somebody asks."""

from __future__ import annotations

import os
import types
from functools import lru_cache
from pathlib import Path

import torch

from torchlens.capture.forwards import FORWARD
from torchlens.records.ops import CallSite

_TORCH = str(Path(torch.__file__).resolve().parent) + os.sep
_PACKAGE = Path(__file__).resolve().parent.parent
# Not the whole package: the example models in it are a user's code like any other.
_OURS = tuple(str(_PACKAGE / name) + os.sep for name in ("analysis", "capture", "proof"))
LONGEST = 2 * 200
_CALL_IMPL = torch.nn.Module._call_impl.__code__


class Sites:
    """Call sites as flat (code, instruction offset) pairs, innermost first; equal sites are one object.

    A site reaches out to the running module's call. The chain of module calls holds the rest of the stack, so deep
    models do not pay for deep stacks; a function that recurses far within one module is cut, or its calls would cost
    the square of its depth.
    """

    def __init__(self) -> None:
        # Hashing a code object costs more than the walk; the sites keep the code alive, so its id is as good.
        self._known: dict[tuple[int, ...], tuple[object, ...]] = {}

    def walk(self, frame: types.FrameType | None) -> tuple[object, ...]:
        """The site of what a frame is about to call."""
        key: list[int] = []
        inner = frame
        while frame is not None and (code := frame.f_code) is not _CALL_IMPL and code is not FORWARD:
            key.append(id(code))
            key.append(frame.f_lasti)
            if len(key) == LONGEST:
                break
            frame = frame.f_back
        site = tuple(key)
        found = self._known.get(site)
        return self._add(site, inner) if found is None else found

    def _add(self, key: tuple[int, ...], frame: types.FrameType | None) -> tuple[object, ...]:
        site: list[object] = []
        while frame is not None and len(site) < len(key):
            site += (frame.f_code, frame.f_lasti)
            frame = frame.f_back
        self._known[key] = tuple(site)
        return self._known[key]


def decode(site: tuple[object, ...]) -> CallSite | None:
    """File, line and function of the innermost frame that is neither torch nor this package; None without one."""
    for code, offset in zip(site[::2], site[1::2], strict=True):
        if isinstance(code, types.CodeType) and not is_internal(code.co_filename):
            return CallSite(code.co_filename, _line(code, int(offset)), code.co_qualname)  # type: ignore[call-overload]
    return None


@lru_cache(maxsize=4096)
def is_internal(filename: str) -> bool:
    """Whether a file belongs to torch or to the recorder."""
    return filename.startswith((_TORCH, *_OURS, "<frozen"))


def _line(code: types.CodeType, offset: int) -> int:
    """Line of an instruction; the function's first line where the compiler left none."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
