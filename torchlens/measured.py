"""The part of a `Trace` that knows its values by their statistics: taken in passing, or worked out from kept values."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlens.records.nonfinite import Start, all_starts
from torchlens.records.payloads import OutStats
from torchlens.records.trace_data import Deferred, TraceData

if TYPE_CHECKING:
    from torchlens.capture.values import Payloads


class Measured:
    """Something recorded whose outputs have statistics."""

    data: TraceData
    _payloads: Payloads | None

    def stats_of(self, index: int) -> tuple[OutStats | None, ...] | None:
        """Statistics of each output of a node, by its index: as taken in passing, else from the kept value.

        None if they were not taken and the value was not kept or was overwritten.
        """
        rows = self.data.nodes.stats[index]
        if rows is None and self._payloads is not None:
            from torchlens.capture.statistics import stats_of  # a trace that is only drawn needs no torch for it

            kept = self._payloads.intact(index)
            rows = stats_of(kept) if kept is not None else None
        return rows

    @property
    def first_nonfinite(self) -> tuple[Start, ...]:
        """Where NaN and Inf started, in order of execution; what only passed them on is left out.

        label: of the node; kinds: "nan", "posinf", "neginf"; cause: "op" if the call made them of finite values (NaN:
        of values without NaN), "input", "buffer" or "constant" if the node holds what was given, "parameter" if it read
        them from one, named in `sources`, "unknown" if not all that it read was checked. Empty if nothing was found or
        nothing could be checked: that needs kept values, or `CaptureOptions(out_stats=True)`. The view "debug" shows
        them.
        """
        return all_starts(self._with_statistics())

    def _with_statistics(self) -> TraceData:
        """The records, with statistics worked out from kept values when somebody asks for them."""
        if self._payloads is None:
            return self.data
        data = copy.copy(self.data)
        data.nodes = replace(data.nodes, stats=Deferred(len(data.nodes), self.stats_of))
        data._records = {}
        return data
