"""What a recorded run means: layers and passes, branches, names of arguments; from events to `TraceData`."""
