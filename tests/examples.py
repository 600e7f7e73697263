"""How many examples a property is tried with that needs more of them than others."""

from hypothesis import settings


def examples(most: int) -> int:
    """`most` in the whole suite, a quarter in the quick part, as tests/conftest.py chooses."""
    return most // 4 if settings.get_current_profile_name() == "quick" else most
