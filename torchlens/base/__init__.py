"""What knows nothing of torch or of us: errors, registries, number formats, colours, text."""
