"""The same examples in every run, on every machine, however busy it is."""

from hypothesis import settings

settings.register_profile("headlight", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("headlight")
