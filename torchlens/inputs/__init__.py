"""From what the caller hands over to the arguments of one forward call."""
