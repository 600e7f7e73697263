"""Every error is one sentence that says what was asked, what was found, what is allowed and what to do."""

import json
import pickle
import re
from string import Formatter
from typing import Any

import pytest

from model import errors
from model.errors import HeadlightError


def subclasses(kind: type[HeadlightError]) -> list[type[HeadlightError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in subclasses(child))]


CLASSES = [kind for kind in subclasses(HeadlightError) if kind.__module__.startswith(errors.__name__)]
LEAVES = [kind for kind in CLASSES if not kind.__subclasses__()]

SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "EmptyText": ({"what": "source text"}, "The source text is empty: there is nothing to run; type at least one word."),
    "TooManyTokens": (
        {"what": "source text", "found": 140, "allowed": 100, "reason": "the model has no more positions"},
        "The source text has 140 tokens, but at most 100 fit (the model has no more positions): shorten it.",
    ),
    "TooManyCharacters": (
        {"what": "source text", "found": "2,000,000", "allowed": "1,600"},
        "The source text has 2,000,000 characters, but at most 1,600 can be read: shorten it.",
    ),
    "TokenOutOfRange": (
        {"what": "source", "found": -1, "last": "7,852"},
        "The source contains the token id -1, but valid ids run from 0 to 7,852: use one of those.",
    ),
    "BadSetting": (
        {"name": "method", "found": "gready", "allowed": "greedy or sample or beam"},
        "method is 'gready', but it must be greedy or sample or beam: change it and run again.",
    ),
    "CannotChange": (
        {"name": "stages/encoder.0.0.self/normed", "reason": "it stays inside the library"},
        "stages/encoder.0.0.self/normed cannot be changed in this network: it stays inside the library. "
        "Change another value, or use a model of our own layout.",
    ),
    "OpenQuestions": (
        {"path": "a.pt", "layout": "tutorial", "open": "n_heads", "settings": "--set n_heads=1|2"},
        "a.pt (layout tutorial) does not tell n_heads: add --set n_heads=1|2, each with the value it was trained with, "
        "or write them into a file beside it that has its name and the ending .spec.json.",
    ),
    "ContradictsFile": (
        {"path": "a.pt", "name": "n_heads", "said": "4", "where": "model_args.n_head", "found": "8 was told"},
        "a.pt itself says n_heads=4 (model_args.n_head), but 8 was told: leave n_heads out, or choose the file that it was meant "
        "for; with another value than it was trained with, every map would be wrong.",
    ),
    "NoVocabulary": (
        {"strip": "source", "found": "hallo"},
        "The source text is 'hallo', but the file holds weights and no words: give ids with blanks between them (--source-ids), "
        "or tell the vocabulary (--set source_vocab=FILE).",
    ),
    "NoTokenizer": (
        {"strip": "source", "found": "hallo", "needed": "vocab.txt"},
        "The source text is 'hallo', but this folder has no tokenizer that is read here: give ids with blanks between them "
        "(--source-ids), or put the tokenizer's files into the folder (vocab.txt).",
    ),
    "NoStart": (
        {"setting": "bos_id"},
        "Nobody told the token that decoding begins with: add --set bos_id=ID, or give the target (--target-ids).",
    ),
    "UnknownLayout": (
        {"path": "a.pt", "nearest": "d2l", "reason": "the file has conv1.weight, which has no place in it"},
        "a.pt names its weights as no layout known here; the nearest is d2l, but the file has conv1.weight, which has no "
        "place in it. What a tensor without a place does cannot be known, so nothing is run: choose another file, or teach "
        "Headlight these names (docs/add-a-layout.md).",
    ),
    "UnsupportedModel": (
        {"path": "tiny", "reason": "its architecture is 'mamba', and those that are run here are bert"},
        "tiny is not run: its architecture is 'mamba', and those that are run here are bert. Its config.json describes what was "
        "trained, and with other values another network would run on its weights: leave it as it is. A program that knows this "
        'model can show its attention, such as transformers with attn_implementation="eager" and output_attentions=True.',
    ),
    "SeveralLayouts": (
        {"path": "a.pt", "what": "tables of weights", "there": "model, ema", "setting": "candidate"},
        "a.pt can be read as several tables of weights: model, ema. Choose one with --set candidate=NAME.",
    ),
    "SeveralFiles": (
        {"path": "mine", "there": "a.pt, b.pt"},
        "mine holds several files of weights (a.pt, b.pt): open one of them instead of the folder.",
    ),
    "IncompleteWeights": (
        {"path": "a.pt", "layout": "d2l", "detail": "it lacks decoder.dense.bias"},
        "a.pt has the layout d2l, but it lacks decoder.dense.bias: "
        "save the whole state_dict of one model, or check what was told of it.",
    ),
    "UnknownModel": (
        {"asked": "gpt", "there": "multi30k-de-en"},
        "There is no model 'gpt' here; there is: multi30k-de-en. Choose one of these.",
    ),
    "UnknownSite": (
        {"asked": "decoder.9.0.self", "there": "decoder.0.0.self"},
        "There is no attention site 'decoder.9.0.self' in this run; there is: decoder.0.0.self. Choose one of these.",
    ),
    "UnknownHead": (
        {"asked": 8, "site": "decoder.0.0.self", "last": 7},
        "There is no head 8 at decoder.0.0.self, whose heads are numbered from 0 to 7: choose one of these.",
    ),
    "UnknownHypothesis": (
        {"asked": 7, "there": 5, "last": 4},
        "There is no hypothesis 7: this search ended with 5, numbered from 0 to 4; choose one of these.",
    ),
    "UnknownStage": (
        {"asked": "decoder.0.0.middle", "there": "embedding, logits"},
        "There is no stage 'decoder.0.0.middle' in this run; there is: embedding, logits. Choose one of these.",
    ),
    "UnknownTensor": (
        {"asked": "positions/middle", "there": "positions/encoder"},
        "There is no tensor 'positions/middle' here; there is: positions/encoder. Choose one of these.",
    ),
    "MissingFile": (
        {"path": "a/spec.json", "needed": "model.safetensors, spec.json and tokenizer.json"},
        "a/spec.json is not there; a checkpoint folder needs model.safetensors, spec.json and tokenizer.json: "
        "restore the file or choose another folder.",
    ),
    "DamagedFile": (
        {"path": "a/spec.json", "detail": "it holds no JSON object"},
        "a/spec.json cannot be read (it holds no JSON object): restore it from a copy or train it anew.",
    ),
    "ShapeMismatch": (
        {"path": "a/model.safetensors", "detail": "output.weight is missing"},
        "a/model.safetensors does not hold the weights that its spec.json describes (output.weight is missing): "
        "use the files of one training run.",
    ),
    "NotACheckpoint": (
        {"path": "w.pt", "found": "a picture"},
        "w.pt is a picture; what can be opened is a safetensors file or a file that torch.save wrote: choose one of these.",
    ),
    "UnsafeFile": (
        {"path": "w.pt", "called": "os.system"},
        "w.pt asks for os.system to be called while it is opened; nothing was called, and the file stays closed. "
        'Whoever made it can save the weights alone: torch.save(model.state_dict(), "weights.pt")',
    ),
    "WholeObject": (
        {"path": "w.pt", "found": "my.Model"},
        "w.pt holds a whole Python object (my.Model), which only its own program could bring back; nothing was run. "
        'Load it there and save the weights alone: torch.save(model.state_dict(), "weights.pt")',
    ),
    "UnsoundFile": (
        {"path": "w.pt", "detail": "two tensors overlap"},
        "w.pt stays closed because two tensors overlap; files that torch.save or safetensors wrote are not like that. "
        'Save the weights anew: torch.save(model.state_dict(), "weights.pt")',
    ),
    "UnreadableNumbers": (
        {"path": "w.pt", "what": "fc.weight", "found": "complex64", "allowed": "float32"},
        "w.pt stores fc.weight as complex64, but what is read here is float32. Save it as float32: "
        'torch.save({name: t.float() for name, t in model.state_dict().items()}, "weights.pt")',
    ),
    "NoWeights": (
        {"path": "w.pt", "found": "a list"},
        'w.pt holds no table of named tensors, only a list. Save the weights as one: torch.save(model.state_dict(), "weights.pt")',
    ),
    "OverLimit": (
        {"path": "w.pt", "what": "its size", "found": "9 GB", "allowed": "4 GB"},
        "w.pt is too much for this machine's limits: its size is 9 GB, and at most 4 GB is allowed. "
        'Save the weights alone, torch.save(model.state_dict(), "weights.pt"), or raise the limit in model/safe_loading/limits.py.',
    ),
    "CannotExport": (
        {"path": "w.pt", "reason": "fc.weight holds numbers that are not finite"},
        "w.pt cannot become a folder of Headlight's own: fc.weight holds numbers that are not finite. "
        "It can still be looked at as it is.",
    ),
    "TokenizerTooSlow": (
        {"path": "a/tokenizer.json", "seconds": 10},
        "The tokenizer a/tokenizer.json took more than 10 s and was stopped: shorten the text, or give ids (--source-ids).",
    ),
    "TokenizerTooLarge": (
        {"path": "a/tokenizer.json", "allowed": "2,147,483,648"},
        "The tokenizer a/tokenizer.json needed more than the 2,147,483,648 bytes of memory that a foreign tokenizer may take "
        "and was stopped: shorten the text, or give ids (--source-ids).",
    ),
    "TokenizerDied": (
        {"path": "a/tokenizer.json", "detail": "a panic"},
        "The tokenizer a/tokenizer.json failed at this text (a panic): change the text, or give ids (--source-ids).",
    ),
    "Busy": ({"ahead": 64}, "The engine is busy, 64 requests are ahead: try again in a few seconds."),
    "Superseded": (
        {"model": "tiny"},
        "This run of tiny was given up for a newer one of the same visitor: look at that one.",
    ),
    "TookTooLong": (
        {"seconds": 60},
        "There was no answer within 60 s: try again, or ask for less (a shorter text, fewer tokens to write).",
    ),
    "OutOfMemory": (
        {"device": "cuda", "found": "1 × 900"},
        "The memory of cuda does not suffice for this run (1 × 900 positions at once): shorten the input or the beam.",
    ),
    "RunFailed": (
        {"error": "PanicException"},
        "This run ended inside a library that it uses (PanicException), and the engine goes on without it: try another text or "
        "another model, and report it if it happens again.",
    ),
    "NoRoom": (
        {"device": "CUDA · NVIDIA H200", "model": "large"},
        "The memory of CUDA · NVIDIA H200 does not suffice for the weights of large: ask for a smaller model, or let the engine "
        "compute on another device (HEADLIGHT_DEVICE).",
    ),
    "EngineAway": (
        {"host": "http://gpu:8765", "seconds": 12},
        "The engine at http://gpu:8765 does not answer since 12 s: it is asked again every few seconds.",
    ),
    "EngineMismatch": (
        {"host": "http://gpu:8765", "what": "the schema", "found": 2, "expected": 1},
        "The engine at http://gpu:8765 has the schema 2, where 1 is expected: reload, or update both to one version.",
    ),
    "Refused": (
        {"what": "the body", "found": "2.0 GB long", "allowed": "at most 32 MB"},
        "the body is 2.0 GB long, which is not served here: at most 32 MB.",
    ),
    "WireError": (
        {"detail": "its schema is 7, this version reads 1"},
        "This is no trace that can be read here (its schema is 7, this version reads 1): "
        "save it anew with this version of Headlight.",
    ),
    "DataError": (
        {"path": "corpus", "detail": "there is neither train.de nor train.de.gz", "do": "put the corpus there"},
        "The data at corpus cannot be used (there is neither train.de nor train.de.gz): put the corpus there.",
    ),
}


def gaps(kind: type[HeadlightError]) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(kind.template) if name is not None}


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn, above = {}, dict[int, str]()
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ((?:│   |    )*)(├── |└── )?([A-Z]\w+)", line):
            depth = len(match[1]) // 4 + bool(match[2])
            above[depth] = match[3]
            drawn[match[3]] = above[depth - 1] if depth else "Exception"
    assert drawn == {kind.__name__: kind.__bases__[0].__name__ for kind in CLASSES}


def test_each_class_has_its_sentence_here() -> None:
    assert {kind.__name__ for kind in LEAVES} == SENTENCES.keys()


@pytest.mark.parametrize("name", SENTENCES)
def test_each_class_says_its_sentence(name: str) -> None:
    fields, sentence = SENTENCES[name]
    error = getattr(errors, name)(**fields)
    assert str(error) == sentence
    assert error.fields == fields


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_each_class_owns_a_template_and_lists_its_gaps(kind: type[HeadlightError]) -> None:
    assert "template" in vars(kind)
    listed = re.search(r"Fields: ([\w, ]+)\.", kind.__doc__ or "")
    assert listed is not None
    assert set(listed[1].split(", ")) == gaps(kind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_sentence_is_one_line_whatever_it_quotes(kind: type[HeadlightError]) -> None:
    hostile = "a\nb\r\n\tc\u2028d\x0b{detail}{0}"
    sentence = str(kind(**dict.fromkeys(gaps(kind), hostile)))
    assert len(sentence.splitlines()) == 1
    assert "{detail}{0}" in sentence


ON_SCREEN = [kind for kind in CLASSES if kind.on_screen]


@pytest.mark.parametrize("kind", ON_SCREEN, ids=lambda kind: kind.__name__)
def test_what_a_screen_says_instead_has_no_other_gaps_and_speaks_of_no_command_line(kind: type[HeadlightError]) -> None:
    assert {name for _, name, _, _ in Formatter().parse(kind.on_screen) if name is not None} <= gaps(kind)
    assert "--" not in kind.on_screen


def test_every_sentence_that_speaks_of_the_command_line_has_another_for_screens() -> None:
    assert [kind.__name__ for kind in CLASSES if "--" in kind.template and not kind.on_screen] == []


@pytest.mark.parametrize("name", SENTENCES)
def test_an_error_comes_back_from_json(name: str) -> None:
    error = getattr(errors, name)(**SENTENCES[name][0])
    again = errors.from_json(json.loads(json.dumps(error.to_json())))
    assert type(again) is type(error)
    assert (str(again), again.fields) == (str(error), error.fields)


@pytest.mark.parametrize("name", SENTENCES)
def test_an_error_comes_back_from_another_process(name: str) -> None:
    error = getattr(errors, name)(**SENTENCES[name][0])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.fields) == (str(error), error.fields)


def test_every_error_can_be_caught_as_one() -> None:
    assert all(
        issubclass(kind, HeadlightError)
        for kind in vars(errors).values()
        if getattr(kind, "__module__", "").startswith(errors.__name__) and isinstance(kind, type)
    )
