"""Sentences that a model does not read: counted, recognized, and said with the model that reads them, of the bundled models."""

import subprocess
import sys
from dataclasses import replace

import pytest

from model.engine.api import Describe, Engine, Run
from model.features.survey.texts import bundled
from model.requests.request import Decoding, RunRequest
from tests.traces import translation
from viz.i18n import translate
from viz.i18n.recognition import recognized
from viz.session.patient_engine import NonBlockingEngine
from viz.widgets.sentence_box import finding, unknown_share

GERMAN, CHINESE, LANGUAGE_MODEL, WORDS = "multi30k-de-en", "tatoeba-en-zh", "wikitext2-lm", "induction"
MOST = "Most of these words are unknown to this model"


def said(engine: Engine, model: str, text: str) -> tuple[str, str]:
    """The sentence about a text, and the model that it names; empty if there is none."""
    found = finding(engine.ask(Describe(model)), engine.ask(Run(RunRequest(model, text, decoding=Decoding(max_length=2)))), engine)
    return ("", "") if found is None else (found.sentence, found.reader.name if found.reader else "")


@pytest.mark.parametrize("model", [GERMAN, CHINESE, LANGUAGE_MODEL, WORDS, "multi30k-de-en-film", "reverse-digits"])
def test_nothing_is_said_of_a_models_own_examples(engine: Engine, model: str) -> None:
    assert [said(engine, model, text) for text in engine.ask(Describe(model)).examples if said(engine, model, text)[0]] == []


@pytest.mark.parametrize(
    ("model", "text", "sentence", "reader"),
    [
        (GERMAN, "Two children are sitting on a bench.", f"{MOST}. “English → Chinese” reads English.", CHINESE),
        (GERMAN, "A man standing on a city street.", "This looks like English, but this model reads German.", CHINESE),
        (GERMAN, "The old man is playing guitar in the park.", "This looks like English, but this model reads German.", CHINESE),
        (GERMAN, "老人在公园里弹吉他", f"{MOST}, and no model here reads Chinese.", ""),
        (GERMAN, "Un vieil homme joue de la guitare.", f"{MOST}, and no model here reads French.", ""),
        (GERMAN, "asdf qwer zxcv", f"{MOST}.", ""),
        (CHINESE, "Zwei Hunde spielen im Schnee.", f"{MOST}. “German → English” reads German.", GERMAN),
        (LANGUAGE_MODEL, "Zwei Hunde spielen im Schnee.", f"{MOST}. “German → English” reads German.", GERMAN),
        (WORDS, "He is taller than me.", f"{MOST}. “Modern language model” reads English.", "captions-lm"),
        (GERMAN, "Eine Frau trägt eine Ledertasche.", "", ""),
        (GERMAN, "Der Bundeskanzler hielt gestern eine Rede im Parlament.", "", ""),
    ],
)
def test_a_sentence_of_another_language_is_said_with_the_model_that_reads_it(
    engine: Engine, model: str, text: str, sentence: str, reader: str
) -> None:
    found = said(engine, model, text)
    assert (found[0].startswith(sentence), found[1]) == (True, reader), found
    assert bool(sentence) == bool(found[0])


HELD_OUT = 200


@pytest.mark.slow
@pytest.mark.parametrize(("model", "most"), [(GERMAN, 0), (CHINESE, 0), (LANGUAGE_MODEL, 2)])
def test_no_held_out_sentence_of_its_own_language_is_called_another(engine: Engine, model: str, most: int) -> None:
    """Of two, most words are unknown: “the <unk> mill and the " sand vein " ( gut ) .”"""
    texts = [str(item.source) for item in bundled(model).items[:HELD_OUT]]
    assert len(texts) == HELD_OUT
    told = [found for text in texts if (found := said(engine, model, text))[0]]
    assert told == [(f"{MOST}.", "")] * most


@pytest.mark.slow
def test_english_captions_are_named_although_most_words_of_some_are_known(engine: Engine) -> None:
    """With a fifth of unknown words as the condition, nothing was said of “A man standing on a city street.”"""
    texts = [str(item.target) for item in bundled(GERMAN).items[:HELD_OUT]]
    found = [said(engine, GERMAN, text) for text in texts]
    assert (sum(bool(told) for told, _reader in found), [reader for _told, reader in found].count(CHINESE)) == (198, 196)


@pytest.mark.parametrize(
    ("spoken", "sentence"),
    [
        ("de", "Dieses Modell kennt die meisten dieser Wörter nicht. „Englisch → Chinesisch“ liest Englisch."),
        ("zh-TW", "這個模型不認識其中大多數詞。「英語 → 中文」能讀英語。"),
    ],
)
def test_it_is_said_in_the_language_of_the_page_which_has_one_name_for_a_language(
    engine: Engine, spoken: str, sentence: str
) -> None:
    trace = engine.ask(Run(RunRequest(GERMAN, "Two children are sitting on a bench.", decoding=Decoding(max_length=2))))
    with translate.speaking(spoken):
        page_engine = NonBlockingEngine(engine)
        found = finding(page_engine.ask(Describe(GERMAN)), trace, page_engine)
    assert found is not None
    assert found.sentence == sentence


def test_a_word_in_fine_pieces_is_unknown_and_one_in_coarse_pieces_is_not() -> None:
    run = translation(source=["<sos>", "leder", "##tasche", "w", "##or", "##l", "##d", ".", "<eos>"], layers=1)
    assert unknown_share(run) == 1 / 2
    assert unknown_share(replace(run, tokens={**run.tokens, "source": replace(run.tokens["source"], unknown=(True,) * 9)})) == 1.0
    assert unknown_share(translation(source=["<sos>", ".", "<eos>"], layers=1)) == 0.0


def test_a_language_that_is_not_sure_is_none() -> None:
    assert [recognized(text) for text in ("Zwei Hunde spielen im Schnee.", "你好", "hello", "fox moon tea", "")] == [
        "de",
        "zh",
        "",
        "",
        "",
    ]


def test_the_library_is_loaded_for_the_first_sentence_that_needs_it() -> None:
    code = "import sys, viz.widgets.sentence_box; print('py3langid' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
