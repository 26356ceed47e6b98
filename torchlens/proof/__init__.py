"""Proof that a recording holds: every op replayed from its recorded parents."""
