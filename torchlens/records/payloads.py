"""Facts about the values of a tensor, for when the tensor itself is not kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

NAN, POSINF, NEGINF = KINDS = ("nan", "posinf", "neginf")
FINITE, MIXED, UNCHECKED = "finite", "mixed", "unchecked"


class Held(NamedTuple):
    """Which numbers that are not finite some values hold.

    kinds: of `KINDS`, in that order; known: whether all of the values were looked at.
    """

    kinds: tuple[str, ...] = ()
    known: bool = True

    @property
    def state(self) -> str:
        """One word: finite, nan, posinf, neginf, mixed or unchecked. What was found counts, whatever was not seen."""
        if self.kinds:
            return self.kinds[0] if len(self.kinds) == 1 else MIXED
        return FINITE if self.known else UNCHECKED


FINITE_VALUES, NOT_LOOKED_AT = Held(), Held((), False)


@dataclass(slots=True)
class OutStats:
    """What the values of one output were like.

    numel: elements; abs_mean, l2 and abs_max: of the finite elements alone, None if there is none; n_nan, n_posinf,
    n_neginf: how many are not finite. Booleans count as 0 and 1. A complex number counts by its modulus; with an
    infinite part and no nan it is one of n_posinf. Sums are made in double precision.
    """

    numel: int
    abs_mean: float | None
    l2: float | None
    abs_max: float | None
    n_nan: int = 0
    n_posinf: int = 0
    n_neginf: int = 0

    @property
    def n_finite(self) -> int:
        """Elements that are neither nan nor infinite."""
        return self.numel - self.n_nan - self.n_posinf - self.n_neginf

    @property
    def is_finite(self) -> bool:
        """Whether every element is a number."""
        return self.n_finite == self.numel

    @property
    def held(self) -> Held:
        """What the tensor holds beside finite numbers."""
        counts = zip(KINDS, (self.n_nan, self.n_posinf, self.n_neginf), strict=True)
        return Held(tuple([kind for kind, count in counts if count]))
