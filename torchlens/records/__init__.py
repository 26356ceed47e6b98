"""Plain facts about one forward pass: value types with no behaviour beyond small derived properties, and no torch."""
