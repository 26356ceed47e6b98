"""Facts about functions by their public names: families, arguments worth showing, FLOPs. Works on plain values only."""
