"""Recording one forward pass: from a live model to `TraceData`, leaving the run as it would have been."""
