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
OWNERS = [kind for kind in CLASSES[1:] if "template" in vars(kind)]

SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "EmptyText": (
        {},
        "The text is empty. Type at least one word.",
    ),
    "TooManyTokens": (
        {"found": 1400, "allowed": 1000, "reason": "the model has no more positions"},
        "The input has 1,400 tokens, but the limit is 1,000: the model has no more positions. Shorten it.",
    ),
    "TooManyCharacters": (
        {"found": 2000000, "allowed": 1600},
        "The text has 2,000,000 characters, but the limit is 1,600. Shorten it.",
    ),
    "TokenOutOfRange": (
        {"found": -1, "last": 7852},
        "There is no token with the id -1: ids run from 0 to 7852.",
    ),
    "MissingSetting": (
        {"name": "--data", "needed": "a folder with cmn.txt"},
        "--data is missing. Needed: a folder with cmn.txt.",
    ),
    "BadSetting": (
        {"name": "method", "found": "gready", "allowed": "greedy, sample, beam"},
        "method: “gready” is not accepted. Allowed: greedy, sample, beam.",
    ),
    "BadEdit": (
        {"edit": "forbid key=klavier", "reason": "the source has no token 'klavier'"},
        "The edit “forbid key=klavier” cannot be made: the source has no token 'klavier'. Change or remove it, then run again.",
    ),
    "BadLecture": (
        {"lecture": "attention.en", "line": 3, "reason": "the front matter lacks models"},
        "The lecture attention.en cannot be read: the front matter lacks models (line 3). Change the file, then open it again.",
    ),
    "BadClaim": (
        {"reason": "the vocabulary has no token “katze”"},
        "This line of the lecture does not fit the run: the vocabulary has no token “katze”. Change the line, or the "
        "view of its step.",
    ),
    "EditedCell": (
        {"site": "decoder.0.2.cross", "head": 4, "edit": "sharpen kind=cross"},
        "The numbers of head 4 at decoder.0.2.cross do not follow from the formula: the edit “sharpen kind=cross” "
        "replaced some of them. Choose another head, or take the edit out.",
    ),
    "RecordedRun": (
        {"name": "hund"},
        "hund is a recording. It contains no model, so nothing else can be computed. Open the checkpoint that it was "
        "recorded from.",
    ),
    "BadLayoutFile": (
        {"path": "our lab", "detail": "“head.b” has no role"},
        "The layout our lab cannot be used: “head.b” has no role. Change it, or choose the roles of the tensors on the "
        "page Checkpoint.",
    ),
    "BadTrace": (
        {"path": "a.trace.safetensors", "detail": "logits holds NaN or infinite numbers"},
        "a.trace.safetensors is not a trace that can be opened: logits holds NaN or infinite numbers. Nothing of it is "
        "shown. Save it again with the program that made it.",
    ),
    "CannotChange": (
        {"name": "stages/encoder.0.0.self/normed", "reason": "it stays inside the library"},
        "stages/encoder.0.0.self/normed cannot be changed in this network: it stays inside the library. Change another "
        "value, or use a model that Headlight itself runs.",
    ),
    "CannotMeasure": (
        {"reason": "it has no output layer, so no target has a probability"},
        "What matters cannot be measured here: it has no output layer, so no target has a probability. Choose another "
        "model or another target.",
    ),
    "OpenQuestions": (
        {"path": "a.pt", "layout": "tutorial", "open": "n_heads", "settings": "--set n_heads=1|2"},
        "a.pt (layout tutorial) leaves these settings open: n_heads. Add --set n_heads=1|2, each with the value it was "
        "trained with, or write them into a file next to it with the same name and the ending .spec.json.",
    ),
    "ContradictsFile": (
        {"path": "a.pt", "name": "n_heads", "said": "4", "where": "model_args.n_head", "given": "8"},
        "a.pt itself says n_heads=4 (model_args.n_head), but the answer given is 8. Leave n_heads out, or choose the "
        "file that it was meant for: with a value other than the one in training, every attention map would be wrong.",
    ),
    "NoVocabulary": (
        {"strip": "source", "found": "hallo"},
        "“hallo” cannot be read: the file contains weights and no vocabulary. Give token ids separated by spaces "
        "(--source-ids), or specify the vocabulary (--set source_vocab=FILE).",
    ),
    "NoTokenizer": (
        {"strip": "source", "found": "hallo", "needed": "vocab.txt"},
        "“hallo” cannot be read: this folder has no tokenizer that Headlight supports. Give token ids separated by "
        "spaces (--source-ids), or put the tokenizer’s files into the folder (vocab.txt).",
    ),
    "NoStart": (
        {"setting": "bos_id"},
        "The start token for decoding is unknown. Add --set bos_id=ID, or give the target (--target-ids).",
    ),
    "UnknownLayout": (
        {"path": "a.pt", "nearest": "d2l", "reason": "conv1.weight has no place in it"},
        "The tensor names in a.pt match no known layout. The closest is d2l. What does not fit: conv1.weight has no "
        "place in it. Nothing was run, because the role of a tensor without a place in the layout is unknown. Choose "
        "another file, or add a layout (docs/add-a-layout.md).",
    ),
    "UnsupportedModel": (
        {"path": "tiny", "reason": "its architecture is 'mamba', and no attention was recognized in what it computes"},
        "tiny was not run: its architecture is 'mamba', and no attention was recognized in what it computes. Do not "
        "change its config.json: with other values, the weights would run in a network that they were not trained for. "
        'A program that knows this model can show its attention, such as transformers with attn_implementation="eager" '
        "and output_attentions=True.",
    ),
    "SeveralLayouts": (
        {"path": "a.pt", "there": "gpt, llama", "setting": "layout"},
        "Several layouts fit a.pt: gpt, llama. Choose one with --set layout=NAME.",
    ),
    "SeveralFiles": (
        {"path": "mine", "there": "a.pt, b.pt"},
        "mine contains several weight files (a.pt, b.pt). Open one of them instead of the folder.",
    ),
    "IncompleteWeights": (
        {"path": "a.pt", "layout": "d2l", "detail": "it lacks decoder.dense.bias"},
        "a.pt matches the layout d2l, but cannot be run: it lacks decoder.dense.bias. Save the complete state_dict of "
        "one model, or check the answers you gave.",
    ),
    "UnknownModel": (
        {"asked": "gpt", "there": "multi30k-de-en"},
        "No model is called “gpt”. Available: multi30k-de-en.",
    ),
    "UnknownSite": (
        {"asked": "decoder.9.0.self", "there": "decoder.0.0.self"},
        "This run has no attention layer “decoder.9.0.self”. Available: decoder.0.0.self.",
    ),
    "UnknownHead": (
        {"asked": 8, "site": "decoder.0.0.self", "last": 7},
        "There is no head 8 at decoder.0.0.self: its heads are numbered from 0 to 7.",
    ),
    "UnknownHypothesis": (
        {"asked": 7, "last": 4},
        "There is no hypothesis 7: those of this beam search are numbered from 0 to 4.",
    ),
    "UnknownStage": (
        {"asked": "decoder.0.0.middle", "there": "embedding, logits"},
        "This run has no stage “decoder.0.0.middle”. Available: embedding, logits.",
    ),
    "UnknownTensor": (
        {"asked": "positions/middle", "there": "positions/encoder"},
        "There is no tensor “positions/middle”. Available: positions/encoder.",
    ),
    "MissingFile": (
        {"path": "a/spec.json", "needed": "model.safetensors, spec.json and tokenizer.json"},
        "a/spec.json is missing. Needed: model.safetensors, spec.json and tokenizer.json. Restore the file or choose "
        "another folder.",
    ),
    "DamagedFile": (
        {"path": "a/spec.json", "detail": "it holds no JSON object"},
        "a/spec.json cannot be read: it holds no JSON object. Restore it from a backup or save the model again.",
    ),
    "ShapeMismatch": (
        {"path": "a/model.safetensors", "detail": "output.weight is missing"},
        "The weights in a/model.safetensors do not match its spec.json: output.weight is missing. Use files from the "
        "same training run.",
    ),
    "NotACheckpoint": (
        {"path": "w.pt", "found": "a PNG image"},
        "w.pt holds no weights that can be read here. It is: a PNG image. Headlight opens safetensors files and files "
        "written by torch.save.",
    ),
    "UnsafeFile": (
        {"path": "w.pt", "called": "os.system"},
        "Opening w.pt would call a function: os.system. Nothing was called, and the file was not opened. Its author "
        'can save the weights alone: torch.save(model.state_dict(), "weights.pt")',
    ),
    "WholeObject": (
        {"path": "w.pt", "found": "my.Model"},
        "w.pt contains a whole Python object (my.Model), which only the program that saved it can load. Nothing was "
        'executed. Load it there and save the weights alone: torch.save(model.state_dict(), "weights.pt")',
    ),
    "UnsoundFile": (
        {"path": "w.pt", "detail": "two tensors overlap"},
        "w.pt was not opened: two tensors overlap. Files written by torch.save or safetensors are not like that. Save "
        'the weights again: torch.save(model.state_dict(), "weights.pt")',
    ),
    "UnreadableNumbers": (
        {"path": "w.pt", "reason": "the tensor fc.weight is of type complex64"},
        "w.pt stores numbers that cannot be read here: the tensor fc.weight is of type complex64. Save it as float32: "
        'torch.save({name: t.float() for name, t in model.state_dict().items()}, "weights.pt")',
    ),
    "NoWeights": (
        {"path": "w.pt", "found": "a list"},
        "w.pt contains no table of named tensors. Found: a list. Save the weights as one: "
        'torch.save(model.state_dict(), "weights.pt")',
    ),
    "OverLimit": (
        {"path": "w.pt", "reason": "it has more than 10 tensors"},
        "w.pt exceeds a limit of this machine: it has more than 10 tensors. Save the weights alone with "
        'torch.save(model.state_dict(), "weights.pt"), or raise the limit in model/safe_loading/limits.py.',
    ),
    "OpeningEnded": (
        {"path": "w.pt", "how": "SIGKILL"},
        "w.pt was not opened: the process that looks into files ended without an answer (SIGKILL). It keeps within its own limits; "
        "the system may have ended it because this machine is short of memory. Try again, with fewer programs running.",
    ),
    "CannotExport": (
        {"path": "w.pt", "reason": "fc.weight holds numbers that are not finite"},
        "w.pt cannot be exported as a Headlight folder: fc.weight holds numbers that are not finite. You can still "
        "explore it as it is.",
    ),
    "TokenizerTooSlow": (
        {"path": "a/tokenizer.json", "seconds": 10},
        "The tokenizer a/tokenizer.json took more than 10 s and was stopped. Shorten the text, or give token ids (--source-ids).",
    ),
    "TokenizerTooLarge": (
        {"path": "a/tokenizer.json", "allowed": 2147483648},
        "The tokenizer a/tokenizer.json needed more than the 2,147,483,648 bytes of memory that an external tokenizer "
        "may use, and was stopped. Shorten the text, or give token ids (--source-ids).",
    ),
    "TokenizerDied": (
        {"path": "a/tokenizer.json", "detail": "a panic"},
        "The tokenizer a/tokenizer.json failed on this text: a panic. Change the text, or give token ids (--source-ids).",
    ),
    "Busy": (
        {"ahead": 64},
        "The engine is busy: 64 requests are ahead of yours. Try again in a few seconds.",
    ),
    "Superseded": (
        {"model": "tiny"},
        "This run of tiny was canceled because you started a newer one. See the newer result.",
    ),
    "StillOpening": (
        {"model": "large.pt"},
        "large.pt is still being opened. Reload the page in a minute.",
    ),
    "TookTooLong": (
        {"seconds": 60},
        "No answer within 60 s. Try again, or ask for less: a shorter text or fewer new tokens.",
    ),
    "OutOfMemory": (
        {"device": "cuda", "found": "1 × 900"},
        "cuda does not have enough memory for this run (1 × 900 positions at once). Shorten the input or use a smaller beam.",
    ),
    "RunFailed": (
        {"error": "PanicException"},
        "This run failed inside a library that it uses: PanicException. The engine keeps running. Try another text or "
        "another model, and report it if it happens again.",
    ),
    "NoRoom": (
        {"model": "large"},
        "There is not enough memory for the weights of large. Choose a smaller model, or move the engine to another "
        "device (HEADLIGHT_DEVICE).",
    ),
    "EngineAway": (
        {"host": "http://gpu:8765", "seconds": 12},
        "The engine at http://gpu:8765 has not answered for 12 s. Retrying every few seconds.",
    ),
    "EngineMismatch": (
        {"host": "http://gpu:8765", "found": "1.2", "expected": "1.1"},
        "The engine at http://gpu:8765 speaks version 1.2 of the protocol, but this page expects 1.1. Reload the page, "
        "or update both sides to the same version.",
    ),
    "WireError": (
        {"detail": "its schema is 7, this version reads 1"},
        "This is not a trace that this version of Headlight can read: its schema is 7, this version reads 1. Save it "
        "again with this version.",
    ),
    "DataError": (
        {"path": "corpus", "detail": "there is neither train.de nor train.de.gz", "do": "put the corpus there"},
        "The data at corpus cannot be used (there is neither train.de nor train.de.gz): put the corpus there.",
    ),
    "UnknownField": (
        {"name": "spec", "found": "dropuot", "allowed": "dropout, bias"},
        "spec has no field “dropuot”. Allowed: dropout, bias.",
    ),
    "MustNotBeSet": (
        {"name": "target", "reason": "an encoder alone generates nothing"},
        "target must not be set: an encoder alone generates nothing.",
    ),
    "DoesNotFit": (
        {"name": "source_vocab", "reason": "it has 27 entries, and the network has 28 ids"},
        "source_vocab cannot be used: it has 27 entries, and the network has 28 ids.",
    ),
    "ContradictsItself": (
        {"path": "a.pt", "name": "n_heads", "said": "5", "where": "model_args.n_head", "allowed": "1 or 2"},
        "a.pt itself says n_heads=5 (model_args.n_head), but its tensors do not allow that. Allowed: 1 or 2. Choose "
        "the file that the setting was meant for.",
    ),
    "SeveralTables": (
        {"path": "a.pt", "there": "model, ema", "setting": "candidate"},
        "a.pt contains several tables of weights: model, ema. Choose one with --set candidate=NAME.",
    ),
    "NotRecorded": (
        {"asked": "attention/decoder.0.0.cross/scores", "reason": "ask for it with --keep scores"},
        "This run does not contain attention/decoder.0.0.cross/scores: ask for it with --keep scores.",
    ),
    "NoArithmetic": (
        {"site": "encoder.0.0.self", "reason": "its scores are not recorded"},
        "The calculation of a cell at encoder.0.0.self is not possible: its scores are not recorded.",
    ),
    "PathNotFound": (
        {"path": "w.pt"},
        "w.pt was not found. Check the path.",
    ),
    "NotReadable": (
        {"path": "w.pt", "reason": "Permission denied"},
        "This program cannot read w.pt: Permission denied. Check the permissions of the file.",
    ),
    "NoMemoryLeft": (
        {},
        "The device does not have enough memory for this run. Shorten the input or use a smaller beam.",
    ),
    "EngineStopped": (
        {},
        "The engine of this program is being stopped. Start Headlight again.",
    ),
    "WeightsChanged": (
        {"host": "http://gpu:8765", "model": "tiny", "found": "abcd", "expected": "1234"},
        "The weights of tiny on the engine at http://gpu:8765 have changed: they are abcd now and were 1234 before. "
        "Reload the page.",
    ),
    "WrongToken": (
        {},
        "This engine is protected, and HEADLIGHT_TOKEN is missing or wrong here. Set it to the value on the engine’s host.",
    ),
    "NoTokenSet": (
        {},
        "HEADLIGHT_TOKEN is not set on the engine’s host, so only programs on that machine may call it. Set it there and here.",
    ),
    "TooFast": (
        {},
        "Too many requests. Wait a moment.",
    ),
    "TooLarge": (
        {"found": 2048.0, "allowed": 32.0},
        "The file or request has 2,048.0 MB, and this server accepts at most 32 MB.",
    ),
    "TooLong": (
        {"found": 5000, "allowed": 1024},
        "The input has 5,000 tokens, and this server accepts at most 1,024. Shorten it.",
    ),
    "TooMuchToWrite": (
        {"found": 64000, "allowed": 32000},
        "This decoding could write 64,000 tokens in all its hypotheses, and this server accepts at most 32,000. Ask "
        "for fewer new tokens or a smaller beam.",
    ),
    "UnknownHost": (
        {"found": "evil.example"},
        "This server does not answer to the name “evil.example”. Use localhost or 127.0.0.1 on this machine; HEADLIGHT_HOSTS "
        "lists other names.",
    ),
    "NotForPages": (
        {},
        "This server answers programs alone, and this request came from a page in a browser (it has an Origin).",
    ),
    "NoUploads": (
        {},
        "This server accepts no files.",
    ),
    "OtherMachine": (
        {},
        "The engine runs on another machine and cannot read this path. Send the file, or start Headlight on that machine.",
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
    assert {kind.__name__ for kind in OWNERS} == SENTENCES.keys()


@pytest.mark.parametrize("name", SENTENCES)
def test_each_class_says_its_sentence(name: str) -> None:
    fields, sentence = SENTENCES[name]
    error = getattr(errors, name)(**fields)
    assert str(error) == sentence
    assert error.fields == fields


@pytest.mark.parametrize("kind", OWNERS, ids=lambda kind: kind.__name__)
def test_each_class_owns_a_template_and_lists_its_gaps(kind: type[HeadlightError]) -> None:
    listed = re.search(r"Fields: ((?:\w+, )*\w+)[.,]", kind.__doc__ or "")
    assert set(listed[1].split(", ") if listed else ()) == gaps(kind)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_each_class_says_something(kind: type[HeadlightError]) -> None:
    assert kind in OWNERS or kind.__subclasses__()


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_a_sentence_is_one_line_whatever_it_quotes(kind: type[HeadlightError]) -> None:
    hostile = "a\nb\r\n\tc\u2028d\x0b{detail}{0}"
    sentence = str(kind(**dict.fromkeys(gaps(kind), hostile)))
    assert len(sentence.splitlines()) == 1
    assert "{detail}{0}" in sentence or not gaps(kind)


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
        if getattr(kind, "__module__", "").startswith(errors.__name__) and isinstance(kind, type) and kind is not errors.Phrase
    )
