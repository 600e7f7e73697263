"""Links: what a view says, a URL keeps; what a URL asks for in vain is said in a sentence."""

from dataclasses import fields, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.spec.edits import Silence
from model.spec.inputs import ROLES, Turn
from model.spec.request import Decoding
from viz.url import links, view_state
from viz.url.parsers import LONGEST_TEXT, written_turns
from viz.url.view_state import PARAMETERS, ViewState

ROOT = Path(__file__).parents[2]

whole = st.integers(0, 10**9)
small = st.integers(0, 999)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=LONGEST_TEXT // 8)
sites = st.builds(
    "{}.{}.{}.{}".format, st.sampled_from(["encoder", "decoder"]), small, small, st.sampled_from(["self", "cross", "memory"])
)
views = st.builds(
    ViewState,
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
    reading=st.sampled_from(view_state.READINGS),
    hide=st.sampled_from(["", "special", "first", "none"]),
    precision=st.sampled_from(["", *view_state.PRECISIONS]),
    against=st.builds(
        view_state.differing,
        model=st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
        text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
        method=st.sampled_from(["greedy", "sample", "beam"]),
        temperature=st.floats(0.01, 10),
        seed=st.integers(0, view_state.LARGEST_SEED),
        precision=st.sampled_from(["", *view_state.PRECISIONS]),
    ),
)


def test_every_field_of_a_view_has_one_parameter_and_every_parameter_a_field() -> None:
    assert sorted(p.field for p in PARAMETERS) == sorted(f.name for f in fields(ViewState))
    assert len({p.name for p in PARAMETERS}) == len(PARAMETERS)


@given(views)
def test_a_link_opens_the_view_that_it_was_copied_from(view: ViewState) -> None:
    url = urlencode(links.write(view))
    assert links.read(dict(parse_qsl(url, keep_blank_values=True))) == (view, [])


@given(st.dictionaries(st.sampled_from([p.name for p in PARAMETERS]) | st.text(max_size=20), st.text(max_size=60), max_size=6))
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
    view, _problems = links.read({"temperature": "1.0", "against": "".join(ViewState().against), "top_p": "1"})
    assert links.write(view) == {}


def test_an_empty_sentence_is_not_the_absence_of_one() -> None:
    assert links.write(ViewState(text="")) == {"text": ""}
    assert links.read({"text": ""})[0].text == ""
    assert links.read({})[0].text is None


@pytest.mark.parametrize(
    ("name", "text", "must"),
    [
        ("decode", "nucleus", "greedy, sample, beam"),
        ("max", "-1", "a whole number from 0 to 1,000"),
        ("max", "1001", "a whole number from 0 to 1,000"),
        ("head", "1.5", "a whole number from 0 to 1,000,000,000"),
        ("head", "", "a whole number from 0 to 1,000,000,000"),
        ("head", "²", "a whole number from 0 to 1,000,000,000"),
        ("head", "9" * 5000, "a whole number from 0 to 1,000,000,000"),
        ("query", "-2", "a whole number from −1 to 1,000,000,000"),
        ("step", "--1", "a whole number from −1 to 1,000,000,000"),
        ("beam", "33", "a whole number from 1 to 32"),
        ("seed", str(2**53), "a whole number from 0 to 9,007,199,254,740,991"),
        ("temperature", "warm", "a number from 0.01 to 10"),
        ("temperature", "0", "a number from 0.01 to 10"),
        ("temperature", "nan", "a number from 0.01 to 10"),
        ("temperature", "inf", "a number from 0.01 to 10"),
        ("top_k", "1000001", "a whole number from 0 to 1,000,000"),
        ("top_p", "", "a number from 0.01 to 1"),
        ("top_p", "1.5", "a number from 0.01 to 1"),
        ("site", "decoder.0.cross", "an attention layer such as decoder.0.2.cross"),
        ("site", "decoder.0.2.sideways", "an attention layer such as decoder.0.2.cross"),
        ("site", f"decoder.0.{'9' * 5000}.cross", "an attention layer such as decoder.0.2.cross"),
        ("pad", "100001", "a whole number from 0 to 100,000"),
        ("silence", "decoder.0.2.cross", "heads such as decoder.0.2.cross:4"),
        ("silence", "decoder.0.2.cross:x", "heads such as decoder.0.2.cross:4"),
        ("begin", "5,x", "token ids such as 5,3"),
        ("begin", ",".join("5" * 1001), "token ids such as 5,3"),
        ("chat", "[", 'the turns of a conversation such as [["user", "Hi"]], or off'),
        ("chat", '[["user", " "]]', 'the turns of a conversation such as [["user", "Hi"]], or off'),
        ("chat", '[["tool", "x"]]', 'the turns of a conversation such as [["user", "Hi"]], or off'),
        ("chat", "[" * 3000, 'the turns of a conversation such as [["user", "Hi"]], or off'),
        ("raw", "2", "a whole number from 0 to 1"),
        ("text", "x" * 4001, "at most 4000 characters"),
        ("against", "decode=nucleus", "greedy, sample, beam"),
        ("against", "head=3", "the differences, such as text=Ein Hund.&decode=beam, each name at most once"),
        ("against", "text=a&text=b", "the differences, such as text=Ein Hund.&decode=beam, each name at most once"),
        ("against", "beam", "a whole number from 1 to 32"),
        ("against", "set=source_vocab=/etc/passwd", "settings such as n_heads=8, each name at most once, but no files"),
        ("against", "text=" + "%" * 2000, "at most 4000 characters"),
    ],
)
def test_a_value_that_cannot_be_read_is_said_and_replaced_by_its_default(name: str, text: str, must: str) -> None:
    view, problems = links.read({name: text, "model": "kept"})
    assert view == ViewState(model="kept")
    assert problems == [f"The link sets {name} to “{text[:40]}”. Allowed: {must}. The default is used."]


def test_a_text_that_is_too_long_for_a_link_is_cut_so_that_opening_the_link_says_so() -> None:
    written = links.write(ViewState(text="x" * 100_000, target="y"))
    assert len(written["text"]) <= 2 * LONGEST_TEXT
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


def test_a_new_sentence_and_another_model_start_without_the_chosen_tokens() -> None:
    assert view_state.NEW_SENTENCE["begin"] == view_state.ANOTHER_MODEL["begin"] == ""
    assert view_state.second_side(ViewState(begin="5", against="decode=beam")).begin == "5"
    assert view_state.second_side(ViewState(begin="5", against="text=w6")).begin == ""


def test_an_unknown_parameter_is_said_and_ignored() -> None:
    view, problems = links.read({"utm_source": "x", "head": "1"})
    assert view == ViewState(head=1)
    assert problems == ["This link contains an unknown parameter “utm_source”, which was ignored."]


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


def test_the_second_side_of_a_comparison_is_the_first_but_for_what_differs() -> None:
    view = ViewState(model="m", settings="n_heads=8", text="ein hund & mehr", head=3, silence="encoder.0.0.self:1")
    against = view_state.differing(text="100 % = a&b", method="beam", beam_size=3)
    other = view_state.second_side(replace(view, against=against))
    assert (other.text, other.method, other.beam_size) == ("100 % = a&b", "beam", 3)
    assert replace(other, text=view.text, method="greedy", beam_size=5, against="") == view
    assert links.read({"against": against}) == (ViewState(against=against), [])


def test_another_model_on_the_second_side_starts_without_what_the_first_was_told() -> None:
    view = ViewState(model="m", settings="n_heads=8", silence="encoder.0.0.self:1", text="x", against="model=other")
    assert view_state.second_side(view) == replace(view, model="other", settings="", silence="")
    told = replace(view, against=view_state.differing(model="other", settings="n_heads=4"))
    assert view_state.second_side(told).settings == "n_heads=4"
    assert view_state.second_side(replace(view, against="model=m")) == replace(view, against="model=m")


def test_the_documentation_lists_every_parameter_with_its_meaning() -> None:
    page = (ROOT / "docs" / "links.md").read_text(encoding="utf-8")
    for parameter in PARAMETERS:
        default = getattr(ViewState(), parameter.field)
        assert f"| `{parameter.name}` | {parameter.meaning} | {'—' if default in ('', None) else f'`{default}`'} |" in page
