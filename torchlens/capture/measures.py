"""What is measured in passing when it was asked for, and how it comes into the trace."""

from __future__ import annotations

from torchlens.capture.autograd import SavedForBackward
from torchlens.capture.event_log import Observer
from torchlens.capture.statistics import Statistics
from torchlens.records.trace_data import TraceData
from torchlens.settings.capture_options import CaptureOptions


class Measures:
    """The observers of one run. observers: to be handed to the event log."""

    def __init__(self, options: CaptureOptions) -> None:
        self._statistics = Statistics() if options.out_stats else None
        self._saved = SavedForBackward() if options.saved_for_backward else None
        found: tuple[Observer | None, ...] = (self._statistics, self._saved)
        self.observers = tuple(observer for observer in found if observer is not None)

    def fill(self, data: TraceData) -> None:
        """Put what was measured into the columns of a finished trace; what was not stays None."""
        count = len(data.nodes)
        if self._statistics is not None:
            rows = self._statistics.rows
            data.nodes.stats = [rows.get(node) for node in range(count)]
        if self._saved is not None:
            self._saved.settle()
            kinds, synthetic, held = data.nodes.kind, data.nodes.synthetic, self._saved.rows
            rows = [held.get(i) if kinds[i] == "op" and not synthetic[i] else None for i in range(count)]
            data.nodes.num_autograd_tensors = [row[0] if row else None for row in rows]
            data.nodes.autograd_memory = [row[1] if row else None for row in rows]
            data.saved_for_backward = self._saved.total
