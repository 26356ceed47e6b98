"""Collapse: fold any drawing to a page, in deterministic steps, by the trace and the request alone.

`units` says what the full drawing holds and which modules may be boxed, `board` is a drawing being folded, `runs` and
`segments` find what may be drawn as one in a row, `schedule` orders the steps, `quality` picks one and evens it, and
`guard` keeps the work bounded. Knows nothing of text, colours or files.
"""
