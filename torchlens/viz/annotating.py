"""The part of a `Trace` that takes the user's own words and pictures. Knows nothing of how they are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchlens.records.notes import BATCH_RENDER, batch_render, check_batch_render
from torchlens.records.trace_data import TraceData

if TYPE_CHECKING:
    from torchlens.viz.subjects import Target


class Annotated:
    """Something recorded to which notes can be attached."""

    data: TraceData

    @property
    def annotations(self) -> dict[str, object]:
        """Notes attached to the trace."""
        return self.data.annotations

    @property
    def batch_render(self) -> str:
        """How many pictures of a batch an input shows: "auto", "all", "first", "first_n:k", "shape_only" (none).

        Setting it to anything else: InvalidArgumentError[batch_render_invalid].
        """
        return batch_render(self.data)

    @batch_render.setter
    def batch_render(self, value: str) -> None:
        self.data.annotations[BATCH_RENDER] = check_batch_render(value)

    def annotate(self, selector: Target, data: Any = None, image: Any = None) -> tuple[str, ...]:
        """Attach your own data or a picture to nodes; drawings show it and `save` keeps it. Returns the labels touched.

        selector: a label, a module address, `tl.module(...)` and the like, or a function of an `Op` that says yes; a
        module means what it returned. data: plain JSON-able data; a mapping shows as rows `key: value`, the first
        three; added to what is there. image: a path of any file that Pillow opens, or a PIL image.
        Raises: UnknownNameError[selector_no_match]; InvalidArgumentError[annotation_invalid, image_unreadable].
        """
        from torchlens.viz.subjects import annotate

        return annotate(self, selector, data, image)
