"""Tokens that are parts of one character are drawn as one chip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.trace.types import Tokens
from tests.folders import byte_pairs
from viz.labels import tokens as labels
from viz.labels.tokens import joined

ASTRONAUT = "👩‍🚀"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["a", "👩", "\u200d", "🚀", "b"], {1: (3, ASTRONAUT)}),
        (["👩", "##\u200d", "##🚀"], {0: (3, ASTRONAUT)}),
        (["👍", "🏽"], {0: (2, "👍🏽")}),
        (["❤", "\ufe0f"], {0: (2, "❤️")}),
        (["🎉", "🎉"], {}),
        (["\\xf0\\x9f", "\\x8e\\x89", "!"], {0: (2, "🎉")}),
        ([" \\xe6", "\\x95\\xb0", "学"], {0: (2, " 数")}),
        (["\\xf0\\x9f\\x91\\xa9", "\\xe2\\x80\\x8d", "\\xf0\\x9f", "\\x9a\\x80"], {0: (4, ASTRONAUT)}),
        (["\\xf0\\x9f", "a", "b"], {}),
        (["می", "\u200c", "خواهم"], {}),
        (["##s", "\u200d"], {}),
        ([], {}),
    ],
)
def test_parts_of_a_character_are_found(texts: list[str], found: dict[int, tuple[int, str]]) -> None:
    assert joined(texts) == found


@given(st.lists(st.text(max_size=6) | st.sampled_from(["\u200d", "\\xf0\\x9f", "##\u200d", "👩", "\ufe0f"]), max_size=12))
def test_runs_do_not_overlap_and_stay_inside(texts: list[str]) -> None:
    end = 0
    for first, (count, text) in sorted(joined(texts).items()):
        assert end <= first
        assert count >= 2
        assert text
        end = first + count
    assert end <= len(texts)


def test_what_a_byte_level_tokenizer_cuts_is_put_together_again() -> None:
    cut = byte_pairs().encode(f"{ASTRONAUT} 数")
    from model.tokenizers.subwords.writing import written

    texts = [written(token, byte_level=True) for token in cut.tokens]
    whole = [text for _first, (_count, text) in sorted(joined(texts).items())]
    assert whole[0] == ASTRONAUT
    assert "数" in whole[1]


def test_labels_of_the_parts_show_the_whole_emoji() -> None:
    texts = ("a", "👩", "\u200d", "🚀")
    strip = Tokens("source", (1, 2, 3, 4), texts, (False,) * 4, (False, True, False, True))
    assert labels.strip(strip) == ["a", f"{ASTRONAUT} 1/3 [unk]", f"{ASTRONAUT} 2/3", f"{ASTRONAUT} 3/3 [unk]"]
    assert labels.strip(strip, longest=None)[2] == "U+200D", "a table shows each token by itself"
