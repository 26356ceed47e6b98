"""Small numbers for call sites, the source order between them, and which function frames they lie in.

A site is what `callsite.walk` gives: flat (code, instruction) pairs, innermost frame first, up to the running module's
call. Knows nothing of events. Code objects are told apart by identity, because hashing one costs more than the whole
analysis of an event; whoever uses a table keeps the sites alive as long as the table.
"""

from __future__ import annotations

import types
from functools import lru_cache
from itertools import chain, repeat

Frames = tuple[tuple[int, int], ...]
_CACHE = 0
_NOWHERE = (None, None, None, None)


class SiteTable:
    """Call sites of one trace.

    frames: per site its (code number, instruction) pairs, outermost first; scopes: per site the numbers of the frames
    below the outermost one, each told apart by the whole path of calls that led to it; scope_of: per scope that path
    and the number of its code.
    """

    def __init__(self) -> None:
        self.frames: list[Frames] = []
        self.scopes: list[tuple[int, ...]] = []
        self.scope_of: list[tuple[Frames, int]] = []
        self.deep: set[int] = set()
        self._known: dict[int, int] = {}
        self._raw: dict[tuple[object, ...], int] = {}
        self._numbers: dict[Frames, int] = {}
        self._scope_numbers: dict[tuple[Frames, int], int] = {}
        self._codes: dict[int, int] = {}
        self._cut: dict[Frames, int] = {}

    def number(self, site: tuple[object, ...], longest: int = 0) -> int:
        """The number of a site as recorded; equal for what is one place of the source.

        longest: length at which the recorder cuts a site, 0 for never.
        """
        found = self._known.get(id(site))
        if found is None:  # the recorder makes equal sites one object, but need not
            raw = (*map(id, site[::2]), *site[1::2])
            found = self._raw.get(raw)
            if found is None:
                frames = self._normal(site)
                found = self._number_cut(frames) if longest and len(site) >= longest else self.intern(frames)
                self._raw[raw] = found
            self._known[id(site)] = found
        return found

    def intern(self, frames: Frames) -> int:
        """The number of a place given by its frames."""
        found = self._numbers.get(frames)
        if found is None and self._cut:
            tails = (self._cut.get(frames[d:]) for d in range(len(frames)))
            found = next((number for number in tails if number is not None), None)
            if found is not None:
                self._numbers[frames] = found
        return self._add(frames) if found is None else found

    def _number_cut(self, frames: Frames) -> int:
        """A recursion too deep to be kept whole: the place whose innermost frames are these, if there is one."""
        if frames not in self._cut:
            whole = (n for n, known in enumerate(self.frames) if known[-len(frames) :] == frames)
            found = next(whole, None)
            self._cut[frames] = self.intern(frames) if found is None else found
        return self._cut[frames]

    def _add(self, frames: Frames) -> int:
        number = self._numbers[frames] = len(self.frames)
        self.frames.append(frames)
        self.scopes.append(tuple([self._scope(frames[:d], frames[d][0]) for d in range(1, len(frames))]))
        if len(frames) > 1:
            self.deep.add(number)
        return number

    def _scope(self, path: Frames, code: int) -> int:
        key = (path, code)
        found = self._scope_numbers.get(key)
        if found is None:
            found = self._scope_numbers[key] = len(self.scope_of)
            self.scope_of.append(key)
        return found

    def _normal(self, site: tuple[object, ...]) -> Frames:
        """Outermost first; a function that calls itself, also through others, keeps its innermost frame only."""
        frames: list[tuple[int, int]] = []
        depth: dict[int, int] = {}
        for k in range(len(site) - 2, -1, -2):
            code, offset = site[k], site[k + 1]
            number = self._codes.setdefault(id(code), len(self._codes))
            first = depth.get(number)
            if first is not None:
                for gone, _ in frames[first:]:
                    del depth[gone]
                del frames[first:]
            depth[number] = len(frames)
            assert isinstance(code, types.CodeType)
            assert isinstance(offset, int)
            frames.append((number, canonical_instructions(code)[offset >> 1] if offset >= 0 else offset))
        return tuple(frames)

    def order(self, a: int, b: int) -> int:
        """-1 if site a stands before site b in the source, 1 if after, 0 if they are one or share no function."""
        for (code, at), (other, there) in zip(self.frames[a], self.frames[b], strict=False):
            if code != other:
                return 0
            if at != there:
                return -1 if at < there else 1
        return 0

    def moved(self, site: int, scope: int, home: int) -> int:
        """The place of a site below one scope, had the scope been reached by the path of another."""
        depth = len(self.scope_of[scope][0])
        return self.intern(self.scope_of[home][0] + self.frames[site][depth:])


@lru_cache(maxsize=4096)
def canonical_instructions(code: types.CodeType) -> tuple[int, ...]:
    """Per code unit, the offset of the first instruction that does the same work of the same piece of source.

    The compiler writes the test of a `while` and the body of a `finally` twice. Two instructions of a chained
    comparison have one range of source as well, but different ranges stand before them.
    """
    table: list[int] = []
    first: dict[tuple[object, ...], int] = {}
    before: tuple[int | None, ...] | None = None
    last: tuple[int | None, ...] | None = None
    # Code that was put together by a program may have positions for its beginning only.
    places = chain(code.co_positions(), repeat(_NOWHERE))
    for unit, (opcode, place) in enumerate(zip(code.co_code[::2], places, strict=False)):
        if opcode == _CACHE and table:  # room that belongs to the instruction before it
            table.append(table[-1])
            continue
        if place != last:
            before, last = last, place
        known = None not in place
        table.append(first.setdefault((opcode, place, before), 2 * unit) if known else 2 * unit)
    return tuple(table)
