"""Links: what a view says, a URL keeps; a value on its limit is taken, one beyond it is refused in a sentence."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.requests.edits import Silence
from model.requests.inputs import ROLES, Turn
from model.requests.request import MOST_TOKENS, Decoding
from viz.feature import features
from viz.features.compare import view as compare_view
from viz.url import links, view_state
from viz.url import parsers as values
from viz.url.parsers import LONGEST_TEXT, written_turns
from viz.url.view_state import ViewState, all_parameters, new_sentence, typed

ROOT = Path(__file__).parents[2]

whole = st.integers(0, 10**9)
small = st.integers(0, 999)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST_TEXT // 8)
sites = st.builds(
    "{}.{}.{}.{}".format, st.sampled_from(["encoder", "decoder"]), small, small, st.sampled_from(["self", "cross", "memory"])
)
sides = st.builds(
    compare_view.differing,
    model=st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    method=st.sampled_from(["greedy", "sample", "beam"]),
    temperature=st.floats(0.01, 10),
    seed=st.integers(0, view_state.LARGEST_SEED),
    precision=st.sampled_from(["", *view_state.PRECISIONS]),
)
views = st.builds(
    lambda against, **fields: ViewState(**fields).changed(against=against),
    against=sides,
    model=texts,
    text=st.none() | texts,
    chat=st.sampled_from(["", "off", "[]"])
    | st.lists(st.tuples(st.sampled_from(ROLES), texts.filter(str.strip)), max_size=3)
    .map(lambda said: written_turns(Turn(*each) for each in said))
    .filter(lambda written: len(written) <= LONGEST_TEXT),
    raw=st.integers(0, 1),
    target=texts,
    method=st.sampled_from(["greedy", "sample", "beam"]),
    max_length=st.integers(0, 1000),
    begin=st.just(""),
    temperature=st.floats(0.01, 10),
    top_k=st.integers(0, 1_000_000),
    top_p=st.floats(0.01, 1),
    seed=st.integers(0, view_state.LARGEST_SEED),
    beam_size=st.integers(1, 32),
    hypothesis=st.integers(0, 63),
    site=st.just("") | sites,
    head=whole,
    query=st.integers(-1, 10**9),
    step=st.integers(-1, 10**9),
    pad_to=st.integers(0, 100_000),
    silence=st.lists(st.builds("{}:{}".format, sites, whole), max_size=3).map(" ".join),
    edits=st.sampled_from(["", "forbid kind=cross key=gitarre", 'allow key=",",4,"4"; no-positions stack=encoder']),
    reading=st.sampled_from(values.READINGS),
    hide=st.sampled_from(["", "special", "first", "none"]),
    precision=st.sampled_from(["", *view_state.PRECISIONS]),
)


def test_every_field_of_a_view_has_one_parameter_and_every_parameter_a_field() -> None:
    owners = (ViewState, *(feature.parameters for feature in features() if feature.parameters is not None))
    names = [field.name for owner in owners for field in fields(owner) if field.name != "brought"]
    assert [parameter.field for parameter in all_parameters()] == names
    assert len({parameter.name for parameter in all_parameters()}) == len(set(names)) == len(names)


@given(views)
def test_a_link_opens_the_view_that_it_was_copied_from(view: ViewState) -> None:
    url = urlencode(links.write(view))
    assert links.read(dict(parse_qsl(url, keep_blank_values=True))) == (view, [])


NAMES = [parameter.name for parameter in all_parameters()]


@given(st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=20), st.text(max_size=60), max_size=6))
def test_whatever_stands_in_a_url_gives_a_view_that_can_be_run_and_written_again(query: dict[str, str]) -> None:
    view, problems = links.read(query)
    view.request()
    assert all(problem.endswith(".") for problem in problems)
    assert links.read(links.write(view)) == (view, [])


def test_defaults_are_left_out() -> None:
    assert links.write(ViewState()) == {}
    assert links.write(ViewState(head=3)) == {"head": "3"}
    assert links.read({}) == (ViewState(), [])


def test_a_default_is_left_out_however_it_was_written() -> None:
    view, _problems = links.read({"temperature": "1.0", "against": "", "top_p": "1"})
    assert links.write(view) == {}


def test_an_empty_sentence_is_not_the_absence_of_one() -> None:
    assert links.write(ViewState(text="")) == {"text": ""}
    assert links.read({"text": ""})[0].text == ""
    assert links.read({})[0].text is None


SITE, EDIT, LONG = "decoder.0.2.cross", "silence site=decoder.0.2.cross head=4", LONGEST_TEXT * "x"
TURNS = 'the turns of a conversation such as [["user", "Hi"]], or off'
PARTS = values.part_names()
SETTINGS = "settings such as n_heads=8, each name at most once, but no files"
ALLOWED: list[tuple[str, str, list[str], list[str]]] = [
    ("text", "at most 4000 characters", [LONG], [f"{LONG}x"]),
    ("target", "at most 4000 characters", [LONG], [f"{LONG}x"]),
    ("chat", TURNS, ["off"], ["[", '[["user", " "]]', '[["tool", "x"]]', "[" * 3000]),
    ("raw", "a whole number from 0 to 1", ["1"], ["2"]),
    ("decode", "greedy, sample, beam", ["beam"], ["nucleus"]),
    ("max", "a whole number from 0 to 1,000", ["0", "1000"], ["-1", "1001"]),
    ("begin", "token ids such as 5,3", ["0"], ["5,x", "-1", "1.5", ",".join("5" * 1001)]),
    ("temperature", "a number from 0.01 to 10", ["0.01", "10"], "warm 0 nan inf 0.0099 10.01 -1".split()),
    ("top_k", "a whole number from 0 to 1,000,000", ["0", "1000000"], ["1000001", "-1"]),
    ("top_p", "a number from 0.01 to 1", ["0.01", "1"], ["", "1.5", "0", "1.01"]),
    ("seed", "a whole number from 0 to 9,007,199,254,740,991", ["9007199254740991"], [str(2**53), "-1"]),
    ("beam", "a whole number from 1 to 32", ["1", "32"], ["0", "33"]),
    ("hypothesis", "a whole number from 0 to 63", ["0", "63"], ["-1", "64"]),
    ("precision", "float32, bfloat16, float16", ["bfloat16"], ["float64"]),
    (
        "site",
        f"an attention layer such as {SITE}",
        [SITE],
        ["decoder.0.cross", "decoder.0.2.sideways", f"decoder.0.{'9' * 5000}.cross"],
    ),
    (
        "head",
        "a whole number from 0 to 1,000,000,000",
        ["0", "1000000000"],
        ["", "1.5", "²", "9" * 5000, "-1", "1000000001", "--1", "+1", "1-", "-"],
    ),
    ("query", "a whole number from −1 to 1,000,000,000", ["-1"], ["-2"]),
    ("key", "a whole number from −1 to 1,000,000,000", ["-1", "1000000000"], ["-2"]),
    ("step", "a whole number from −1 to 1,000,000,000", ["-1"], ["--1"]),
    ("snapshot", "a whole number from −1 to 1,000,000,000", ["-1"], ["-2"]),
    ("pad", "a whole number from 0 to 100,000", ["0", "100000"], ["-1", "100001"]),
    ("clock", "token, computation", ["token", "computation"], ["sun"]),
    (
        "stage",
        f"a stage such as {SITE}/weights",
        [f"{SITE}/weights", "encoder/embedding"],
        [
            SITE,
            "/weights",
            f"{SITE}/",
            "Decoder.0.2.cross/weights",
            f"{SITE}/weights/more",
            f"{'x' * 61}/weights",
            f"encoder/{'x' * 21}",
        ],
    ),
    ("measure", "entropy, near_diagonal, antidiagonal, similarity", ["entropy"], ["beauty"]),
    ("silence", f"heads such as {SITE}:4", [f"{SITE}:0"], [SITE, f"{SITE}:x", f"{SITE}:-1", f"{SITE}:1 {SITE}"]),
    ("set", SETTINGS, ["n_heads=8"], ["n_heads", "n_heads=8 n_heads=8", "N=8", "=8", f"{'x' * 41}=8", f"n_heads={'8' * 201}"]),
    ("edit", f"edits such as {EDIT}, joined by semicolons", [EDIT], ["hush site=decoder.0.2.cross"]),
    ("off", "positions in the list of edits such as 0,2, or all", ["0,2", "all"], ["b", "all,1", "-1", "zzz"]),
    ("minus", "a key, counted from 0, or mean", ["3", "mean"], ["-1"]),
    ("rival", "runner-up, none, or the id of a token", ["runner-up", "17"], ["first"]),
    ("trail", "cells such as decoder.0.2.cross:4:2:1", ["decoder.0.2.cross:4:2:1"], ["decoder.0.2.cross:4:2"]),
    ("lang", "en, de, zh-CN, zh-TW", ["de"], ["xx"]),
    ("big", "a whole number from 0 to 1", ["0", "1"], ["-1", "2"]),
    (
        "open",
        ", ".join(PARTS),
        [PARTS[0], " ".join(PARTS)],
        ["everything", f"{PARTS[0]} everything"],
    ),
    ("against", "greedy, sample, beam", ["decode=beam"], ["decode=nucleus"]),
    (
        "against",
        "the differences, such as text=Ein Hund.&decode=beam, each name at most once",
        ["text=a"],
        ["head=3", "text=a&text=b"],
    ),
    ("against", "a whole number from 1 to 32", ["beam=2"], ["beam"]),
    ("against", SETTINGS, ["set=n_heads=8"], ["set=source_vocab=/etc/passwd"]),
    ("against", "at most 4000 characters", [], ["text=" + "%" * 2000]),
]
"""Parameters: what is allowed, in the words of the sentence, values that are taken, and values that are not."""


@pytest.mark.parametrize(("name", "allowed", "taken", "refused"), ALLOWED)
def test_what_lies_on_a_limit_is_taken_and_what_lies_beyond_is_said_and_replaced(
    name: str, allowed: str, taken: list[str], refused: list[str]
) -> None:
    asked = next(parameter for parameter in all_parameters() if parameter.name == name)
    for text in taken:
        view, problems = links.read({name: text})
        assert problems == []
        assert str(view.value(asked)) in (text, f"{text}.0")
        assert links.write(view).get(name, str(ViewState().value(asked))) in (text, f"{text}.0")
    for text in refused:
        view, problems = links.read({name: text, "model": "kept"})
        assert view == ViewState(model="kept"), text[:60]
        assert problems == [f"The link sets {name} to “{text[:40]}”. Allowed: {allowed}. The default is used."]


def test_a_text_that_is_too_long_for_a_link_is_cut_so_that_opening_the_link_says_so() -> None:
    assert links.write(ViewState(text=LONG))["text"] == LONG
    written = links.write(ViewState(text="x" * 100_000, target="y"))
    assert len(written["text"]) == LONGEST_TEXT + 1
    view, problems = links.read(written)
    assert view == ViewState(target="y")
    assert [problem[:27] for problem in problems] == ["The link sets text to “xxxx"]


def test_chosen_tokens_are_left_out_in_words_where_they_cannot_begin_a_decode() -> None:
    assert links.read({"begin": "5,3", "max": "2"}) == (ViewState(begin="5,3", max_length=2), [])
    assert ViewState(begin="5,3").request().begin == (5, 3)
    for query in ({"max": "1"}, {"target": "w5"}):
        view, problems = links.read({"begin": "5,3", **query})
        assert (view, view.request().begin) == (links.read(query)[0], ())
        assert [problem[:35] for problem in problems] == ["The tokens chosen in this link were"]


def test_an_unknown_parameter_is_said_and_ignored() -> None:
    view, problems = links.read({f"utm_source{'u' * 90}": "x", "head": "1"})
    assert view == ViewState(head=1)
    assert problems == [f"This link contains an unknown parameter “utm_source{'u' * 30}”, which was ignored."]


def test_a_view_asks_for_the_run_that_it_shows() -> None:
    view = ViewState(
        model="m", text="ein hund", target="a dog", method="beam", beam_size=3, silence="decoder.0.2.cross:4 encoder.0.0.self:0"
    )
    request = view.request(("scores",), pad_to=20)
    assert (request.model, request.source, request.target, request.source_pad_to) == ("m", "ein hund", "a dog", 20)
    assert request.decoding == Decoding("beam", beam_size=3)
    assert request.edits == (Silence("decoder.0.2.cross", (4,)), Silence("encoder.0.0.self", (0,)))
    assert request.keep == ("scores",)
    assert replace(view, target="").request().target is None
    assert ViewState().request().source == ""
    assert ViewState().request().source_pad_to is None
    assert ViewState().request().settings == ()
    assert dict(ViewState(settings="b=2 a=1").request().settings) == {"a": "1", "b": "2"}
    assert len({ViewState(), ViewState(head=0), ViewState(head=1)}) == 2, "a view is a value"


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
        (values.parts, "  ".join(PARTS[::-1]), " ".join(PARTS)),
        (values.off, "".join(["a", "ll"]), values.ALL_OFF),
        (values.off, "2,0,2", "0,2"),
    ],
)
def test_a_value_is_written_in_one_way(reader: Callable[[str], str], text: str, written: str) -> None:
    assert reader(text) == written
    assert reader(written) == written


def test_heads_to_be_silenced_are_counted_from_0_in_the_order_of_the_link() -> None:
    assert values.silences("encoder.0.1.self:2 decoder.0.0.cross:0 encoder.0.1.self:0") == (
        Silence("encoder.0.1.self", (2, 0)),
        Silence("decoder.0.0.cross", (0,)),
    )


def test_settings_travel_sorted_by_name() -> None:
    assert values.settings_text({"n_heads": "8", "layout": "x"}) == "layout=x n_heads=8"
    assert values.pairs("layout=x n_heads=8") == {"layout": "x", "n_heads": "8"}


def test_a_new_sentence_forgets_places_in_the_old_one_and_nothing_else() -> None:
    of_why = {"minus": "", "trail": "", "rival": "runner-up", "corrupted": "", "row": -1}
    of_a_run = {"begin": "", "hypothesis": 0, "query": -1, "key": -1, "step": -1, "pad_to": 0}
    assert of_a_run | of_why == new_sentence()


def test_edits_that_are_not_there_cannot_be_off() -> None:
    two = ViewState(edits="silence site=decoder.0.2.cross head=4; silence site=decoder.0.2.cross head=5")
    assert replace(two, off="1,2,7").switched_off() == {1}
    assert replace(two, off=values.ALL_OFF).switched_off() == {0, 1}


def test_logs_leave_out_every_parameter_that_holds_what_people_typed() -> None:
    assert {"against", "begin", "chat", "corrupted", "edit", "set", "target", "text"} == typed()


def test_a_field_accepts_what_its_parameter_can_say_and_nothing_else() -> None:
    default = ViewState()
    for asked in all_parameters():
        kept = default.value(asked)
        assert asked.accepts("" if kept is None else kept, kept)
        for forged in (None, [], object(), b"x", 10**30, "no such value" if isinstance(kept, int | float) else 3):
            assert not asked.accepts(forged, kept), (asked.name, forged)
    by_name = {asked.name: asked for asked in all_parameters()}
    assert by_name["reading"].accepts("mean", "head")
    assert not by_name["reading"].accepts("../geheim", "head")
    assert not by_name["lang"].accepts("../geheim", "")
    assert by_name["text"].accepts("a" * 10_000, ""), "a box takes more than a URL"


def test_the_documentation_lists_every_parameter_with_its_meaning() -> None:
    page = (ROOT / "docs" / "links.md").read_text(encoding="utf-8")
    assert f"The names of `open`: {', '.join(PARTS)}." in page
    assert f"The names of `picture`: {', '.join(values.picture_names())}." in page
    for parameter in all_parameters():
        default = ViewState().value(parameter)
        assert f"| `{parameter.name}` | {parameter.meaning} | {'—' if default in ('', None) else f'`{default}`'} |" in page
