"""Labels: a token is called the same everywhere, is never markup, and cannot disturb what stands beside it."""

import re
import string
import tracemalloc
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.trace.trace_files import read_path
from model.trace.types import Kind, Site, Tokens, Trace
from tests import traces
from tests.traces import attention, strip, translation
from viz.canvas.wire import strings
from viz.i18n.translate import in_millions
from viz.labels import tokens

any_text = st.text(st.characters(), max_size=60)


def one(text: str, unknown: bool = False) -> Tokens:
    return Tokens("source", (7,), (text,), (False,), (unknown,))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hund", "hund"),
        ("a b", "a␣b"),
        (" ", "␣"),
        ("   ", "␣␣␣"),
        ("\u00a0\u3000\u2028", "␣␣␣"),
        ("\t", "␉"),
        ("\n", "↵"),
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\x7f", "␡"),
        ("\x85", "␣"),
        ("\x9b", "U+009B"),
        ("\u200b", "U+200B"),
        ("\ufeff", "U+FEFF"),
        ("\u202eabc", "U+202Eabc"),
        ("\ue000", "U+E000"),
        ("你好", "你好"),
        ("🐕", "🐕"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("\u200d", "U+200D"),
        ("##\u200d\ufe0f", "##U+200DU+FE0F"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("e\u0301", "e\u0301"),
        ("\u0301", "◌\u0301"),
        ("</script><img src=x onerror=alert(1)>", "</script><img␣src=x␣onerror=alert(1)>"),
    ],
)
def test_plain_shows_what_would_be_invisible_and_leaves_the_rest(text: str, shown: str) -> None:
    assert tokens.plain(text) == shown


@given(any_text)
def test_plain_leaves_no_character_that_acts_instead_of_being_seen(text: str) -> None:
    joiners = "\u200c\u200d"
    for character in tokens.plain(text):
        assert character in joiners or not character.isspace()
        assert character in joiners or unicodedata.category(character)[0] != "C"


@given(any_text)
def test_plain_of_plain_is_plain(text: str) -> None:
    assert tokens.plain(tokens.plain(text)) == tokens.plain(text)


@given(any_text)
def test_markdown_escapes_whatever_could_be_read_as_markup(text: str) -> None:
    rest = iter(tokens.markdown(text))
    for character in rest:
        if character == "\\":
            assert next(rest) in string.punctuation
        else:
            assert character not in string.punctuation
            assert character == " " or not character.isspace()


@pytest.mark.parametrize(
    "text",
    ("https://a.b x:http://a.b WWW.a.b <-> --> :+1: :a:b: www.a.b a@b.cc :streamlit: :dog: <- -> -- >= <= ~=").split(),
)
def test_markdown_keeps_letters_apart_that_streamlit_would_join_after_escapes_are_undone(text: str) -> None:
    parsed = re.sub(r"\\(.)", r"\1", tokens.markdown(text))
    assert parsed.replace("\u2060", "") == text
    assert not re.search(r"\w://|www\.|\w@|:[\w+]+:|<-|->|--|[<>~]=", parsed, re.IGNORECASE)


def test_markdown_adds_nothing_to_an_ordinary_sentence() -> None:
    assert tokens.markdown("Layer 3: “a-b” = 0.5, see (1).") == r"Layer 3\: “a\-b” \= 0\.5\, see \(1\)\."


def test_a_long_token_is_cut_in_labels_and_whole_where_asked_for() -> None:
    word = "donaudampfschifffahrtsgesellschaft"
    assert tokens.token(one(word), 0) == "donaudampfschifffahrtsg…"
    assert len(tokens.token(one(word), 0)) == tokens.LONGEST
    assert tokens.token(one(word), 0, longest=None) == word
    assert tokens.token(one(word[: tokens.LONGEST]), 0) == word[: tokens.LONGEST]


@pytest.mark.parametrize("word", ["שלום", "مرحبا", "abc שלום", "אבגדהוזחטיכלמנסעפצקרשתאבגדהוזח"])
def test_a_right_to_left_token_is_isolated(word: str) -> None:
    label = tokens.token(one(word, unknown=True), 0)
    assert label.startswith("\u2068")
    assert label.endswith("\u2069 [unk]")
    assert label.count("\u2068") == label.count("\u2069") == 1


def test_a_token_cannot_forge_an_isolate() -> None:
    assert tokens.token(one("\u2067שלום\u2069"), 0) == "\u2068U+2067שלוםU+2069\u2069"


def test_a_right_to_left_word_stays_isolated_inside_markdown() -> None:
    """Its marks were shown: "Continued from “U+2068…”", and without them it reordered the sentence."""
    sentence = f"Continued from “{tokens.word('שלום')}” (3)"
    assert "“\u2068שלום\u2069”" in tokens.markdown(sentence)
    assert "\u2068" not in tokens.markdown("one mark alone: \u2068")


def test_an_unknown_token_keeps_its_text_and_is_marked() -> None:
    assert tokens.token(one("xylofon", unknown=True), 0) == "xylofon [unk]"
    assert tokens.token(one("xylofon"), 0) == "xylofon"
    assert tokens.token(one("[UNK]", unknown=True), 0) == "[UNK]"


def test_repeated_tokens_each_have_a_label() -> None:
    assert tokens.strip(strip("source", ["der"] * 3)) == ["der"] * 3


def test_keys_and_encoder_queries_are_the_tokens_themselves() -> None:
    trace = translation(["<sos>", "ein", "hund", "<eos>"], ["<sos>", "a", "dog", "<eos>"])
    encoder = trace.at("encoder.0.0.self")
    assert tokens.queries(trace, encoder) == tokens.keys(trace, encoder) == ["<sos>", "ein", "hund", "<eos>"]
    assert tokens.keys(trace, trace.at("decoder.0.0.cross")) == ["<sos>", "ein", "hund", "<eos>"]


@pytest.mark.parametrize("site", ["decoder.0.0.self", "decoder.0.0.cross"])
def test_a_decoder_row_carries_the_token_read_and_the_token_written(site: str) -> None:
    trace = translation(["<sos>", "ein", "hund", "<eos>"], ["<sos>", "a", "dog", "<eos>"])
    assert tokens.queries(trace, trace.at(site)) == ["<sos> → a", "a → dog", "dog → <eos>"]


def test_the_last_row_of_a_forced_target_writes_nothing_that_is_in_the_strip() -> None:
    trace = translation(["<sos>", "hund", "<eos>"], ["<sos>", "a", "dog"])
    whole = replace(trace, tokens={**trace.tokens, "target": strip("target", ["<sos>", "a"])})
    assert tokens.queries(whole, whole.at("decoder.0.0.self")) == ["<sos> → a", "a"]


def test_keys_stop_where_the_weights_stop() -> None:
    trace = translation(["<sos>", "hund", "<eos>"], ["<sos>", "a", "dog", "<eos>"])
    assert tokens.keys(trace, trace.at("decoder.0.0.self")) == ["<sos>", "a", "dog"]


@pytest.mark.parametrize(
    ("site", "query", "key"),
    [
        ("encoder.0.1.self", "query: encoder (German)", "key: encoder (German)"),
        ("decoder.0.1.self", "query: decoder (English)", "key: decoder (English)"),
        ("decoder.0.1.cross", "query: decoder (English)", "key: encoder (German)"),
    ],
)
def test_an_axis_says_whose_tokens_it_carries(site: str, query: str, key: str) -> None:
    trace = translation()
    assert tokens.query_axis(trace, Site.parse(site)) == query
    assert tokens.key_axis(trace, Site.parse(site)) == key


def test_what_is_no_text_is_called_an_image_or_a_sound() -> None:
    trace, site = traces.of_an_image(), Site("encoder", 0, 0, "self")
    assert tokens.query_axis(trace, site) == "query: encoder (image)"
    assert strings.strip_title(trace, "source", generated=False) == "Patches"
    heard = replace(trace, model={**trace.model, "spec": {"encoder": {"sound": {"frames": 200}}, "decoder": {}}})
    assert tokens.key_axis(heard, site) == "key: encoder (sound)"


@pytest.mark.parametrize(
    ("count", "said"), [(9_012_345, "9.0"), (134_515_008, "134.5"), (100_000, "0.1"), (21_312, "0.021"), (1_234, "0.0012")]
)
def test_a_small_network_has_more_than_no_parameters(count: int, said: str) -> None:
    assert in_millions(count) == said


def test_axes_of_a_language_model_and_of_a_model_without_languages() -> None:
    site = Site("decoder", 0, 0, "self")
    prompt = strip("source", ["the", "dog"])
    made = attention(site, np.tril(np.ones((2, 2), bool)), 2, np.random.default_rng(0))
    site_of_prompt = replace(made, query_tokens="source", key_tokens="source")
    trace = Trace(model={}, request={}, tokens={"source": prompt}, attention={site: site_of_prompt})
    assert tokens.query_axis(trace, site) == "query: decoder (source)"
    assert tokens.key_axis(trace, site) == "key: decoder (source)"
    continued = replace(trace, model={"spec": {"encoder": None, "decoder": {}}, "languages": {"source": "source"}})
    assert tokens.query_axis(continued, site) == "query: decoder (text)", "the prompt and what continues it are no source"
    assert tokens.queries(trace, site_of_prompt) == ["the → dog", "dog"]


@pytest.mark.parametrize(
    ("stack", "kind", "name"),
    [
        ("encoder", "self", "Encoder self-attention"),
        ("decoder", "self", "Decoder self-attention"),
        ("decoder", "cross", "Cross-attention"),
        ("decoder", "memory", "Memory attention"),
    ],
)
def test_sites_are_counted_from_one(stack: str, kind: Kind, name: str) -> None:
    assert tokens.kind(stack, kind) == name
    assert tokens.site(Site(stack, 0, 2, kind)) == f"{name}, layer 3"
    assert tokens.site(Site(stack, 0, 2, kind), head=4) == f"{name}, layer 3, head 5"
    assert tokens.site(Site(stack, 1, 0, kind)) == f"{name}, pass 2, layer 1"
    assert tokens.site(Site(stack, 1, 0, kind), head=0) == f"{name}, pass 2, layer 1, head 1"


@pytest.mark.slow
@pytest.mark.parametrize("convert", [tokens.plain, tokens.markdown])
def test_labels_of_long_tokens_do_not_stay_in_memory_for_ever(convert: Callable[[str], str]) -> None:
    """Up to 4,096 texts were remembered, however long: of 100,000 characters each, 1.6 GB."""
    tracemalloc.start()
    try:
        for number in range(30):
            assert str(number) in convert(f"{number}" + "⌘" * 20_000)  # 40 kB, and as much again for what is shown
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.5 * tokens.CACHE_BYTES


def test_a_short_label_of_a_long_token_is_made_of_its_beginning() -> None:
    long = "a\n" * 1_000_000
    assert tokens.token(one(long), 0) == ("a↵" * 12)[:23] + "…"
    assert tokens.token(one("x" * 24), 0) == "x" * 24
    assert tokens.token(one("x" * 25), 0) == "x" * 23 + "…"
    assert tokens.token(one("\x9b" * 5), 0) == ("U+009B" * 4)[:23] + "…"


def test_a_text_is_converted_once() -> None:
    calls = list[str]()
    remembered = tokens.remembered(lambda text: calls.append(text) or text.upper())  # type: ignore[func-returns-value]
    assert [remembered("a"), remembered("a"), remembered("b")] == ["A", "A", "B"]
    assert calls == ["a", "b"]


def test_the_blank_of_a_german_percentage_is_no_blank_of_a_token() -> None:
    assert tokens.markdown("93\u00a0% auf a\u00a0b") == "93 \\% auf a␣b"


def test_a_head_whose_layer_is_known_is_named_without_its_module() -> None:
    """A title of a lecture read "Decoder self-attention, layer 1, head 4 · transformer.h.0.self_attention"."""
    trace = read_path(Path(__file__).parents[2] / "lectures" / "traces" / "alibi.trace.safetensors")
    site = next(iter(trace.attention))
    assert trace.module(site), "this recording names its modules"
    assert tokens.head_name(trace, site, 3) == "Decoder self-attention, layer 1, head 4"
