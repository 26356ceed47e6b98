"""One model a file: `case()` gives (model, args, kwargs), EXPECT what has to hold; see `facts.py`."""
