"""Odd programs: what PyTorch runs and a recorder easily gets wrong, each with the graph that it computes."""
