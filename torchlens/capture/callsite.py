"""Where a call was made: cheap frame references while recording, file and line only when somebody asks."""

from __future__ import annotations

import os
import types
from functools import lru_cache
from pathlib import Path

import torch

from torchlens.records.ops import CallSite

_TORCH = str(Path(torch.__file__).resolve().parent) + os.sep
_OURS = str(Path(__file__).resolve().parent) + os.sep
_LONGEST = 2 * 200
_CALL_IMPL = torch.nn.Module._call_impl.__code__


def walk(frame: types.FrameType | None) -> tuple[object, ...]:
    """Flat (code, instruction offset) pairs from a frame out to the running module's call, innermost first.

    The chain of module calls holds the rest of the stack, so deep models do not pay for deep stacks; a function that
    recurses far within one module is cut, or its calls would cost the square of its depth.
    """
    site: list[object] = []
    while frame is not None and len(site) < _LONGEST:
        code = frame.f_code
        if code is _CALL_IMPL:
            break
        site.append(code)
        site.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(site)


def decode(site: tuple[object, ...]) -> CallSite | None:
    """File, line and function of the innermost frame that is neither torch nor this package; None without one."""
    for code, offset in zip(site[::2], site[1::2], strict=True):
        if isinstance(code, types.CodeType) and not is_internal(code.co_filename):
            return CallSite(code.co_filename, _line(code, int(offset)), code.co_qualname)  # type: ignore[call-overload]
    return None


@lru_cache(maxsize=4096)
def is_internal(filename: str) -> bool:
    """Whether a file belongs to torch or to the recorder."""
    return filename.startswith((_TORCH, _OURS, "<frozen"))


def _line(code: types.CodeType, offset: int) -> int:
    """Line of an instruction; the function's first line where the compiler left none."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno
