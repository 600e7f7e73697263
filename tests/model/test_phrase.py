"""Phrases: one template and what fills it, from where it is said to where it is shown."""

import json
import pickle
from dataclasses import asdict, replace

import pytest

from model import errors
from model.errors import BadSetting, Busy, Phrase, counted, in_english, phrase, rewritten
from model.requests.validation import read
from model.trace.serialization import from_bytes, to_bytes
from tests import traces

SAID = (
    phrase("a whole number from 0 to {last:,}", last=2000),
    phrase("The file itself answers: {answers}.", answers=(phrase("the first: {a}", a="n=1"), "b=2")),
    counted("{count:,} text", "{count:,} texts", 1),
    counted("{count:,} text", "{count:,} texts", 2345),
    phrase("{share:.1%} of {name}", share=0.25, name="{not a gap}"),
)


@pytest.mark.parametrize("said", SAID, ids=str)
def test_a_phrase_survives_every_way_it_travels(said: Phrase) -> None:
    plain = json.loads(json.dumps(said.to_json()))
    assert Phrase.from_json(plain) == said
    assert str(Phrase.from_json(plain)) == str(said)
    assert hash(Phrase.from_json(plain)) == hash(said)
    assert pickle.loads(pickle.dumps(said)) == said
    assert read(str | Phrase, json.loads(json.dumps(asdict(said))), "said") == said  # type: ignore[arg-type, comparison-overlap]
    assert json.loads(json.dumps({"notes": [plain]}), object_hook=in_english) == {"notes": [str(said)]}
    again = errors.from_json(json.loads(json.dumps(errors.CannotMeasure(reason=said).to_json())))
    assert again.fields["reason"] == said


def test_a_phrase_is_an_english_sentence() -> None:
    assert list(map(str, SAID)) == [
        "a whole number from 0 to 2,000",
        "The file itself answers: the first: n=1; b=2.",
        "1 text",
        "2,345 texts",
        "25.0% of {not a gap}",
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"template": "{a.__class__}", "fields": {"a": 1}},
        {"template": "{a[0]}", "fields": {"a": "x", "a[0]": "x"}},
        {"template": "{a:999999999}", "fields": {"a": 1}},
        {"template": "{a:{b}}", "fields": {"a": 1, "b": "9"}},
        {"template": "{a!r}", "fields": {"a": 1}},
        {"template": "{0}", "fields": {"0": 1}},
        {"template": "{a", "fields": {"a": 1}},
        {"template": "{a}", "fields": {}},
        {"template": "{a}", "fields": {"a": {"b": 1}}},
        {"template": "{a}", "fields": []},
        {"template": 5, "fields": {}},
        {"template": "many", "fields": {"n": "x"}, "singular": "one", "count": "n"},
        {"template": "x", "fields": {}, "more": 1},
        [], None, "text",
    ],
    ids=str,
)  # fmt: skip
def test_what_only_looks_like_a_phrase_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"phrase|gap|expected"):
        Phrase.from_json(data)  # type: ignore[arg-type]
    with pytest.raises(BadSetting):
        read(Phrase, data, "note")


def test_phrases_in_phrases_end() -> None:
    data: dict[str, object] = {"template": "x", "fields": {}}
    for _ in range(2000):
        data = {"template": "{a}", "fields": {"a": data}}
    with pytest.raises(ValueError, match="phrases in phrases"):
        Phrase.from_json(data)


def test_a_reason_that_is_a_plain_text_is_shown_as_it_is() -> None:
    found = errors.from_json({"error": "CannotMeasure", "fields": {"reason": "it is too old"}})
    assert str(found).startswith("What matters cannot be measured here: it is too old.")
    assert "HoldsNothing" in str(errors.from_json({"error": "HoldsNothing", "fields": {}}))


def test_what_counts_has_a_sentence_for_one() -> None:
    assert "1 request is ahead" in str(Busy(ahead=1))
    assert "2 requests are ahead" in str(Busy(ahead=2))


def test_a_trace_keeps_its_phrases_and_is_in_english_for_other_readers() -> None:
    note, why = phrase("It has {count:,} heads.", count=2000), phrase("not recorded: ask for it with --keep {name}", name="scores")
    made = traces.translation()
    trace = replace(made, model={**made.model, "notes": (note, "typed by hand")}, missing={"attention/*/scores": why, "x": "old"})
    data = to_bytes(trace)
    found = from_bytes(data)
    assert tuple(found.model["notes"]) == (note, "typed by hand")
    assert dict(found.missing) == {"attention/*/scores": why, "x": "old"}
    header = json.loads(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]["headlight"])
    assert header["model"]["notes"] == ["It has 2,000 heads.", "typed by hand"]
    assert header["missing"]["attention/*/scores"] == "not recorded: ask for it with --keep scores"
    assert to_bytes(found) == data


def test_a_folder_is_taken_out_of_every_gap() -> None:
    inner = phrase("{path} is not a text file that can be read ({error})", path="/secret/a.txt", error="E")
    found = rewritten((phrase("the first: {reason}", reason=inner), "/secret/b"), lambda text: text.replace("/secret/", ""))
    assert isinstance(found, tuple)
    assert list(map(str, found)) == ["the first: a.txt is not a text file that can be read (E)", "b"]
    assert rewritten(5, str.upper) == 5
