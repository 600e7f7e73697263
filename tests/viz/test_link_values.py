"""Values of URL parameters: what lies on a limit is taken, what lies beyond is refused, and each kind has one way to be written."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from model.spec.edits import Silence
from model.spec.request import MOST_TOKENS
from viz.url import parsers as values
from viz.url.links import read, write
from viz.url.parsers import LONGEST_TEXT
from viz.url.view_state import NEW_SENTENCE, PARAMETERS, TYPED, ViewState, second_side


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max", "0"),
        ("max", "1000"),
        ("temperature", "0.01"),
        ("temperature", "10"),
        ("top_k", "0"),
        ("top_k", "1000000"),
        ("top_p", "0.01"),
        ("top_p", "1"),
        ("seed", "9007199254740991"),
        ("beam", "1"),
        ("beam", "32"),
        ("hypothesis", "0"),
        ("hypothesis", "63"),
        ("head", "0"),
        ("head", "1000000000"),
        ("query", "-1"),
        ("key", "-1"),
        ("key", "1000000000"),
        ("step", "-1"),
        ("snapshot", "-1"),
        ("pad", "0"),
        ("pad", "100000"),
        ("clock", "token"),
        ("clock", "computation"),
        ("stage", "decoder.0.2.cross/weights"),
        ("stage", "encoder/embedding"),
        ("measure", "entropy"),
        ("text", "x" * LONGEST_TEXT),
        ("target", "x" * LONGEST_TEXT),
        ("silence", "decoder.0.2.cross:0"),
        ("set", "n_heads=8"),
        ("lang", "de"),
        ("big", "0"),
        ("big", "1"),
        ("open", values.PARTS[0]),
        ("open", " ".join(values.PARTS)),
        ("begin", "0"),
    ],
)
def test_a_value_on_its_limit_is_taken(name: str, text: str) -> None:
    field = next(parameter.field for parameter in PARAMETERS if parameter.name == name)
    view, problems = read({name: text})
    assert problems == []
    assert str(getattr(view, field)) in (text, f"{text}.0")
    assert write(view).get(name, str(getattr(ViewState(), field))) in (text, f"{text}.0")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("max", "1001"),
        ("temperature", "0.0099"),
        ("temperature", "10.01"),
        ("temperature", "-1"),
        ("top_k", "-1"),
        ("top_p", "0"),
        ("top_p", "1.01"),
        ("seed", "-1"),
        ("beam", "0"),
        ("hypothesis", "-1"),
        ("hypothesis", "64"),
        ("head", "-1"),
        ("head", "1000000001"),
        ("head", "--1"),
        ("head", "+1"),
        ("head", "1-"),
        ("head", "-"),
        ("query", "-2"),
        ("key", "-2"),
        ("snapshot", "-2"),
        ("pad", "-1"),
        ("clock", "sun"),
        ("stage", "decoder.0.2.cross"),
        ("stage", "/weights"),
        ("stage", "decoder.0.2.cross/"),
        ("stage", "Decoder.0.2.cross/weights"),
        ("stage", "decoder.0.2.cross/weights/more"),
        ("stage", f"{'x' * 61}/weights"),
        ("stage", f"encoder/{'x' * 21}"),
        ("measure", "beauty"),
        ("target", "x" * (LONGEST_TEXT + 1)),
        ("silence", "decoder.0.2.cross:-1"),
        ("silence", "decoder.0.2.cross:1 decoder.0.2.cross"),
        ("set", "n_heads"),
        ("set", "n_heads=8 n_heads=8"),
        ("set", "N=8"),
        ("set", "=8"),
        ("set", f"{'x' * 41}=8"),
        ("set", f"n_heads={'8' * 201}"),
        ("precision", "float64"),
        ("lang", "xx"),
        ("big", "-1"),
        ("big", "2"),
        ("open", "everything"),
        ("open", f"{values.PARTS[0]} everything"),
    ],
)
def test_a_value_beyond_its_limit_is_refused(name: str, text: str) -> None:
    view, problems = read({name: text})
    assert view == ViewState()
    assert len(problems) == 1


def test_a_whole_number_has_no_more_digits_than_any_limit() -> None:
    wide = values.whole(0, 10**30)
    assert wide("0" * 19 + "7") == 7
    with pytest.raises(ValueError, match="a whole number from 0 to"):
        wide("0" * 20 + "7")


@pytest.mark.parametrize(
    ("reader", "text", "written"),
    [
        (values.settings, " b=2  a=1 ", "a=1 b=2"),
        (values.settings, "a=x=y", "a=x=y"),
        (values.settings, "a=", "a="),
        (values.settings, "", ""),
        (values.silence, " encoder.0.1.self:2   decoder.0.0.cross:07", "encoder.0.1.self:2 decoder.0.0.cross:7"),
        (values.silence, "", ""),
        (values.site, "encoder.0.1.self", "encoder.0.1.self"),
        (values.ids, "5,03", "5,3"),
        (values.ids, ",".join(["7"] * MOST_TOKENS), ",".join(["7"] * MOST_TOKENS)),
        (values.ids, "", ""),
        (values.parts, "  ".join(values.PARTS[::-1]), " ".join(values.PARTS)),
        (values.off, "".join(["a", "ll"]), values.ALL_OFF),
    ],
)
def test_a_value_is_written_in_one_way(reader: Callable[[str], str], text: str, written: str) -> None:
    assert reader(text) == written
    assert reader(written) == written


@pytest.mark.parametrize("text", ["-1", "x", "1.5", ",".join(["7"] * (MOST_TOKENS + 1))], ids=lambda text: text[:3])
def test_what_is_no_token_id_or_too_many_of_them_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="token ids such as 5,3"):
        values.ids(text)


def test_what_is_no_edit_is_refused_in_the_words_of_links() -> None:
    with pytest.raises(ValueError, match="edits such as silence site="):
        values.edits("hush site=decoder.0.2.cross")


def test_heads_to_be_silenced_are_counted_from_0_in_the_order_of_the_link() -> None:
    assert values.silences("encoder.0.1.self:2 decoder.0.0.cross:0 encoder.0.1.self:0") == (
        Silence("encoder.0.1.self", (2, 0)),
        Silence("decoder.0.0.cross", (0,)),
    )


def test_settings_travel_sorted_by_name() -> None:
    assert values.settings_text({"n_heads": "8", "layout": "x"}) == "layout=x n_heads=8"
    assert values.pairs("layout=x n_heads=8") == {"layout": "x", "n_heads": "8"}


def test_the_sentence_about_a_parameter_shows_the_beginning_of_a_long_name() -> None:
    _, problems = read({"u" * 100: "x"})
    assert problems == [f"This link contains an unknown parameter “{'u' * 40}”, which was ignored."]
    _, problems = read({"head": "x" * 41})
    assert f"“{'x' * 40}”" in problems[0]


def test_a_text_too_long_for_a_link_is_cut_behind_the_first_character_too_many() -> None:
    assert len(write(ViewState(text="x" * 9000))["text"]) == LONGEST_TEXT + 1
    assert len(write(ViewState(text="x" * LONGEST_TEXT))["text"]) == LONGEST_TEXT


def test_places_of_edits_count_from_0_and_are_numbers_or_all() -> None:
    assert values.off("2,0,2") == "0,2"
    assert values.off("all") == "all"
    assert values.off("") == ""
    for wrong in ("b", "all,1", "-1", "zzz"):
        with pytest.raises(ValueError, match="positions in the list of edits"):
            values.off(wrong)


def test_what_a_cell_is_compared_with_and_the_cells_that_led_to_it() -> None:
    assert values.key_or_mean("3") == "3"
    assert values.key_or_mean("mean") == "mean"
    assert values.rival("runner-up") == "runner-up"
    assert values.rival("17") == "17"
    one = "decoder.0.2.cross:4:2:1"
    assert values.cells(f"{one} encoder.0.0.self:0:1:2") == (("decoder.0.2.cross", 4, 2, 1), ("encoder.0.0.self", 0, 1, 2))
    assert values.trail(" ".join([one] * 20)).split() == [one] * values.LONGEST_TRAIL
    for read_value, wrong in ((values.key_or_mean, "-1"), (values.rival, "first"), (values.trail, "decoder.0.2.cross:4:2")):
        with pytest.raises(ValueError, match=r"a key|runner-up|cells such as"):
            read_value(wrong)


def test_a_new_sentence_forgets_places_in_the_old_one_and_nothing_else() -> None:
    of_why = {"minus": "", "trail": "", "rival": "runner-up", "corrupted": ""}
    of_a_run = {"begin": "", "hypothesis": 0, "query": -1, "key": -1, "step": -1, "pad_to": 0}
    assert of_a_run | of_why == NEW_SENTENCE


def test_edits_that_are_not_there_cannot_be_off() -> None:
    two = ViewState(edits="silence site=decoder.0.2.cross head=4; silence site=decoder.0.2.cross head=5")
    assert replace(two, off="1,2,7").switched_off() == {1}
    assert replace(two, off=values.ALL_OFF).switched_off() == {0, 1}


def test_logs_leave_out_every_parameter_that_holds_what_people_typed() -> None:
    assert {"against", "begin", "chat", "corrupted", "edit", "set", "target", "text"} == TYPED


@pytest.mark.parametrize("models", [("a", "b"), ("b", "a")])
def test_another_model_beside_the_first_starts_without_its_settings_and_edits(models: tuple[str, str]) -> None:
    own, other = models
    view = ViewState(
        model=own, settings="n_heads=8", edits="silence site=decoder.0.2.cross head=4", off="0", against=f"model={other}"
    )
    assert second_side(view) == replace(view, model=other, settings="", edits="", off="")
    assert second_side(replace(view, against=f"model={own}")) == replace(view, against=f"model={own}")


def test_what_is_off_on_one_side_counts_the_edits_of_that_side() -> None:
    edit = "silence site=decoder.0.2.cross head=4"
    view = ViewState(edits=edit, off="0", against="beam=3")
    assert second_side(view).off == "0"
    assert second_side(replace(view, against=f"edit={edit}")).off == ""


def test_a_field_accepts_what_its_parameter_can_say_and_nothing_else() -> None:
    default = ViewState()
    for asked in PARAMETERS:
        kept = getattr(default, asked.field)
        assert asked.accepts("" if kept is None else kept, kept)
        for forged in (None, [], object(), b"x", 10**30, "no such value" if isinstance(kept, int | float) else 3):
            assert not asked.accepts(forged, kept), (asked.name, forged)
    by_name = {asked.name: asked for asked in PARAMETERS}
    assert by_name["reading"].accepts("mean", "head")
    assert not by_name["reading"].accepts("../geheim", "head")
    assert not by_name["lang"].accepts("../geheim", "")
    assert by_name["text"].accepts("a" * 10_000, ""), "a box takes more than a URL"
