"""A table of named things that grows by decorator and refuses unknown names with the list of known ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from torchlens.base.errors import fail, nearest

T = TypeVar("T")


class Registry(Generic[T]):
    """Named things of one kind, in order of registration.

    noun: what an entry is, for error texts ("label row"); code: the error code of an unknown name.

        ROWS: Registry[RowFunction] = Registry("label row", code="encoding_source_invalid")

        @ROWS.add("dtype")
        def dtype_row(...): ...
    """

    def __init__(self, noun: str, *, code: str = "config_name_unknown") -> None:
        self._noun, self._code = noun, code
        self._entries: dict[str, T] = {}

    def add(self, name: str) -> Callable[[T], T]:
        """Decorator that enters its argument under this name and returns it unchanged."""

        def enter(entry: T) -> T:
            self.put(name, entry)
            return entry

        return enter

    def put(self, name: str, entry: T) -> None:
        """Enter a thing under a name. Raises [registry_name_taken] if the name is in use."""
        if name in self._entries:
            fail("registry_name_taken", f"the {self._noun} {name!r} is registered already", name=name)
        self._entries[name] = entry

    def get(self, name: str) -> T:
        """The entry of this name. Raises the registry's code, listing the names, if there is none."""
        found = self._entries.get(name)
        if found is None:
            close = nearest(name, self._entries, 1)
            fix = f"use {close[0]!r}" if close else ""
            fail(self._code, f"{name!r} is no {self._noun}", allowed=sorted(self._entries), fix=fix, name=name)
        return found

    def names(self) -> list[str]:
        """Names in order of registration."""
        return list(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
