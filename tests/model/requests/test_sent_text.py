"""Numbers and addresses that anybody may send: read within limits, or None; never an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.requests.sent_text import split_address, whole_number


@pytest.mark.parametrize(
    "text", ["", "-", "--1", "+1", " 1", "1 ", "1_0", "1.0", "1e3", "²", "٣", "0x1", "\x00", "9" * 5000, "-" * 5000]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert whole_number(text, -100, 100) is None


def test_numbers_are_read_within_their_limits() -> None:
    assert [whole_number(text, 0, 10) for text in ("0", "10", "07", "11", "-1", "007")] == [0, 10, 7, None, None, None]
    assert whole_number("-3", -3, 3) == -3
    assert whole_number(str(2**63), 0, 2**63) == 2**63


@pytest.mark.parametrize(
    "text",
    ["http://[", "http://]", "//[::1", "http://h:99999999", "http://h:²", "http://h:" + "9" * 5000],
    ids=lambda text: text[:20],
)
def test_a_malformed_address_is_none(text: str) -> None:
    assert split_address(text) is None


def test_an_address_is_split() -> None:
    found = split_address("https://[::1]:8501/explore?text=a")
    assert found is not None
    assert (found.scheme, found.hostname, found.port, found.query) == ("https", "::1", 8501, "text=a")


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    whole_number(text, -(10**9), 10**9)
    split_address(text)
    split_address(f"http://{text}")
