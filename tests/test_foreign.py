"""The tables of foreign files in the documentation say what happens: what runs agrees as closely, what is refused says the same."""

from pathlib import Path

import pytest

from tests.foreign import TABLES, documented, tried
from tests.foreign_files import Case

pytestmark = pytest.mark.slow  # the transformers library

EACH = [pytest.param(page, case, id=f"{page}: {case.name}") for page, cases in TABLES.items() for case in cases if case.quick]
CLOSE = 2e-5
"""The largest difference that counts as the same numbers."""


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("document", "case"), EACH)
def test_a_foreign_case_does_what_the_table_says(document: str, case: Case, tmp_path: Path) -> None:
    number, words = documented(document)[case.name]
    found, said = tried(case, tmp_path)
    assert said == words
    assert (found is None) == (number == "")
    if found is not None:
        assert found < CLOSE
        assert found <= 10 * float(number) + 2e-6, "the table promises more"


@pytest.mark.parametrize("document", TABLES)
def test_a_table_has_a_row_for_each_case_and_no_other(document: str) -> None:
    assert list(documented(document)) == [case.name for case in TABLES[document]]
