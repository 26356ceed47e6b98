"""What is measured in passing when it was asked for, and how it comes into the trace."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from torchlens.capture.autograd import SavedForBackward
from torchlens.capture.event_log import Observer
from torchlens.capture.statistics import Statistics, WatchedParameters
from torchlens.records.payloads import NOT_LOOKED_AT
from torchlens.records.trace_data import Deferred, TraceData
from torchlens.settings.capture_options import CaptureOptions


class Measures:
    """The observers of one run. observers: to be handed to the event log."""

    def __init__(self, options: CaptureOptions, params: Iterable[torch.Tensor] = ()) -> None:
        # Where values are kept, statistics are worked out when somebody asks; parameters are then looked at too.
        self._params = WatchedParameters(params) if options.out_stats or options.keeps_values else None
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
        if self._params is not None and self._statistics is not None:
            # Now, not later: nobody has stepped an optimizer yet.
            held = self._params.held
            data.param_values = [held(p.index) if p.used_by else NOT_LOOKED_AT for p in data.params]
        elif self._params is not None:
            data.param_values = Deferred(len(data.params), self._params.held)
        if self._saved is not None:
            self._saved.settle()
            kinds, synthetic, held = data.nodes.kind, data.nodes.synthetic, self._saved.rows
            rows = [held.get(i) if kinds[i] == "op" and not synthetic[i] else None for i in range(count)]
            data.nodes.num_autograd_tensors = [row[0] if row else None for row in rows]
            data.nodes.autograd_memory = [row[1] if row else None for row in rows]
            data.saved_for_backward = self._saved.total
