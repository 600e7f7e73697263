"""Conversations: their ids and replies are the library's own, and a template that means harm ends in a sentence."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import model.__main__ as command_line
from model.checkpoints import loader
from model.engine.api import Describe, Run
from model.engine.local import LocalEngine
from model.errors import BadChat, HeadlightError, TokenizerTooLarge, TokenizerTooSlow, TooManyCharacters, TooManyTokens
from model.huggingface.tokenizer import LibraryTokenizer
from model.inference.run import run
from model.requests.inputs import Chat, Turn
from model.requests.request import Decoding, RunRequest
from model.tokenizers.chat import ChatTemplate
from model.tokenizers.subwords import limits
from model.tokenizers.subwords.process import TokenizerProcess
from model.trace import serialization
from model.trace.types import chat_of
from tests import chats
from tests.chats import CHATML, LLAMA3, LONG, MISTRAL, NO_SYSTEM, ONE, TOLD

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
NAMED = [{"name": "tool_use", "template": "{{ 1 / 0 }}"}, {"name": "default", "template": CHATML}]


def reader(folder: Path) -> LibraryTokenizer:
    found = loader.load(folder, {}, CPU).tokenizers["source"]
    assert isinstance(found, LibraryTokenizer)
    return found


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> TokenizerProcess:
    path = tmp_path_factory.mktemp("pieces") / "tokenizer.json"
    chats.pieces().save(str(path))
    return TokenizerProcess(path, {"path": str(path)}, 1 << 20)


@pytest.mark.parametrize(
    ("template", "own_file"),
    [(CHATML, True), (CHATML, False), (LLAMA3, False), (MISTRAL, True), (NO_SYSTEM, False), (NAMED, False)],
)
def test_the_ids_of_a_conversation_are_those_of_the_library(tmp_path: Path, template: Any, own_file: bool) -> None:
    chats.save(tmp_path, template, own_file)
    ours, theirs = reader(tmp_path), AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for turns in (ONE, *(() if template == NO_SYSTEM else (TOLD, LONG))):
        wanted = theirs.apply_chat_template(chats.messages(*turns), add_generation_prompt=True)
        found = ours.render(chats.chat(*turns), "source")
        assert list(found.tokens.ids) == wanted["input_ids"]
        assert found.text == theirs.apply_chat_template(chats.messages(*turns), add_generation_prompt=True, tokenize=False)


def test_turns_begin_where_the_template_begins_them(tmp_path: Path) -> None:
    chats.save(tmp_path, LLAMA3)
    found = reader(tmp_path).render(chats.chat(*LONG), "source")
    assert [found.tokens.texts[at] for at in found.starts] == ["<s>", *["<|start_header_id|>"] * 4]
    assert found.starts[0] == 0
    chats.save(tmp_path, MISTRAL)
    assert reader(tmp_path).render(chats.chat(*TOLD), "source").starts == (), "it writes the system's words into the user's"


def test_a_reply_is_what_the_library_generates_and_ends_at_each_end_token(tmp_path: Path) -> None:
    chats.save(tmp_path, CHATML)
    prompt = reader(tmp_path).render(chats.chat(*ONE), "source").tokens.ids
    library = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager", dtype=torch.float32).eval()
    asked: dict[str, Any] = {"attention_mask": torch.ones(1, len(prompt)), "do_sample": False, "max_new_tokens": 12}
    free = library.generate(torch.tensor([prompt]), **asked, eos_token_id=None)[0].tolist()
    end = free[len(prompt) + 4]
    chats.save(tmp_path, CHATML, eos_token_id=[3, end])
    trace = run(loader.load(tmp_path, {}, CPU), RunRequest("x", chats.chat(*ONE), decoding=Decoding(max_length=12)), CPU, "cpu")
    wanted = library.generate(torch.tensor([prompt]), **asked, eos_token_id=[3, end])[0].tolist()
    assert list(trace.tokens["source"].ids) == wanted == free[: free.index(end, len(prompt)) + 1]
    assert trace.model["spec"]["more_ends"] == (end,)


def test_the_trace_and_its_file_hold_the_turns_and_the_hash_of_the_template(tmp_path: Path) -> None:
    chats.save(tmp_path / "tiny", CHATML)
    engine = LocalEngine(tmp_path, CPU)
    request = RunRequest("tiny", chats.chat(*LONG), decoding=Decoding(max_length=3))
    trace = engine.ask(Run(request))
    again = serialization.from_bytes(serialization.to_bytes(trace))
    assert RunRequest.from_json(again.request).source == request.source
    found = chat_of(again)
    assert found is not None
    assert found.template == ChatTemplate(CHATML).fingerprint
    assert found.text.startswith("<|im_start|>system\nBe short.<|im_end|>\n")
    own = again.tokens["source"]
    assert found.reply == AutoTokenizer.from_pretrained(tmp_path / "tiny").decode(own.ids[-3:], skip_special_tokens=True)


def test_the_engine_says_which_models_chat_and_how_they_sample(tmp_path: Path) -> None:
    chats.save(tmp_path / "chats", CHATML, do_sample=True, temperature=0.6, top_p=0.9)
    chats.save(tmp_path / "greedy", "", do_sample=False, temperature=0.6, top_k=5)
    chats.save(tmp_path / "wild", CHATML, do_sample=True, temperature=-3, top_p="all", top_k=True)
    engine = LocalEngine(tmp_path, CPU)
    talks, greedy, wild = (engine.ask(Describe(name)) for name in ("chats", "greedy", "wild"))
    assert (talks.chats, talks.sampling) == (True, Decoding("sample", temperature=0.6, top_k=50, top_p=0.9))
    assert (greedy.chats, greedy.sampling) == (False, None)
    assert wild.sampling == Decoding("sample", temperature=1.0, top_k=50, top_p=1.0)
    with pytest.raises(BadChat, match="this model has no chat template"):
        engine.ask(Run(RunRequest("greedy", chats.chat(*ONE))))


HARMFUL = {
    "{{ raise_exception('Not like this') }}": "“Not like this”",
    "{% for i in range(10**9) %}x{% endfor %}": "OverflowError: Range too big",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}": "SecurityError: access to attribute '__class__'",
    "{{ messages.__init__.__globals__ }}": "SecurityError",
    "{{ cycler.__init__.__globals__.os.popen('id') }}": "SecurityError",
    "{{ messages.append(1) }}": "SecurityError",
    "{% for %}": "TemplateSyntaxError",
    "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}": "RecursionError",
    "{% include '/etc/passwd' %}": "no loader",
    "{{ missing.field }}": "UndefinedError",
    "{{ raise_exception('x' * 1000000) }}": "xxx",
}


@pytest.mark.parametrize("template", HARMFUL)
def test_a_harmful_template_ends_in_one_sentence(process: TokenizerProcess, template: str) -> None:
    with pytest.raises(BadChat) as caught:
        process.encode_chat(chats.chat(*ONE), ChatTemplate(template))
    assert HARMFUL[template] in str(caught.value)
    assert len(str(caught.value)) < 600
    assert process.encode_chat(chats.chat(*ONE), ChatTemplate("a{{ messages[0].content }}"))[1] == "athe dog?"


ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", [ENDLESS, "{{ 9 ** (9 ** 9) }}"])
def test_a_template_that_does_not_end_is_stopped(process: TokenizerProcess, monkeypatch: pytest.MonkeyPatch, template: str) -> None:
    process.encode_chat(chats.chat(*ONE), ChatTemplate("warm"))  # the library is imported once
    monkeypatch.setattr(limits, "SECONDS_TO_CUT", 2)
    with pytest.raises(TokenizerTooSlow, match="more than 2 s"):
        process.encode_chat(chats.chat(*ONE), ChatTemplate(template))
    monkeypatch.undo()
    assert process.encode_chat(chats.chat(*ONE), ChatTemplate("fine"))[1] == "fine"


SWELLING = (
    "{{ 'a' * 5000000000 }}",
    "{{ 'a' * 5000000 }}",
    "{% set ns = namespace(text='a') %}{% for i in range(40) %}{% set ns.text = ns.text + ns.text %}{% endfor %}{{ ns.text }}",
)


@pytest.mark.parametrize("template", SWELLING)
def test_a_template_that_writes_too_much_is_stopped(process: TokenizerProcess, template: str) -> None:
    with pytest.raises((TokenizerTooLarge, BadChat)) as refused:
        process.encode_chat(chats.chat(*ONE), ChatTemplate(template))
    if sys.platform == "linux" and isinstance(refused.value, BadChat):
        assert "chat template took more than 268,435,456 bytes of memory" in str(refused.value)
    assert process.encode_chat(chats.chat(*ONE), ChatTemplate("fine"))[1] == "fine"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has")
def test_a_template_takes_no_more_memory_than_it_may(process: TokenizerProcess) -> None:
    """A gigabyte, which the process as a whole may have, is too much; a hundredth of it is not."""
    wide = "{{% set text = 'a' * {size} %}}{{{{ text | length }}}}"
    assert process.encode_chat(chats.chat(*ONE), ChatTemplate(wide.format(size=10**7)))[1] == str(10**7)
    with pytest.raises(BadChat, match="took more than 268,435,456 bytes of memory"):
        process.encode_chat(chats.chat(*ONE), ChatTemplate(wide.format(size=10**9)))
    assert process.encode_chat(chats.chat(*ONE), ChatTemplate("fine"))[1] == "fine"


def test_a_template_that_writes_too_many_tokens_is_refused(process: TokenizerProcess) -> None:
    with pytest.raises(TooManyTokens):
        process.encode_chat(chats.chat(*ONE), ChatTemplate("{{ '? ' * 200000 }}"))


def test_a_template_of_ten_megabytes_is_left_out_and_said(tmp_path: Path) -> None:
    for own_file in (False, True):
        chats.save(tmp_path, CHATML + " " * 10_000_000, own_file)
        found = loader.load(tmp_path, {}, CPU)
        assert reader(tmp_path).template is None
        assert any("chat template" in str(note) for note in found.notes)
        run(found, RunRequest("x", "the dog", decoding=Decoding(max_length=1)), CPU, "cpu")


BAD: dict[str, tuple[Any, type[HeadlightError], str]] = {
    "system refused": (TOLD, BadChat, "chat template refuses it: “System role not supported”"),
    "empty turn": ((("user", "a"), ("assistant", " \n"), ("user", "b")), BadChat, r"turn 2 \(assistant\) is empty"),
    "no question": ((("user", "a"), ("assistant", "b")), BadChat, "its last turn must be the user’s"),
    "nothing": ((), BadChat, "its last turn must be the user’s"),
    "many": ((("user", "a"),) * 201, BadChat, "it has 201 turns, and at most 200 are read"),
    "too many tokens": ((("user", "x" * 500),), TooManyTokens, "The conversation has 5.. tokens, but the limit is 400"),
    "too many characters": ((("user", "d" * 10_000),), TooManyCharacters, "The conversation has 10,000 characters"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_conversation_that_cannot_be_run_is_one_sentence(tmp_path: Path, case: str) -> None:
    turns, kind, sentence = BAD[case]
    chats.save(tmp_path, NO_SYSTEM)
    with pytest.raises(kind, match=sentence):
        run(loader.load(tmp_path, {}, CPU), RunRequest("x", chats.chat(*turns)), CPU, "cpu")


def test_roles_in_another_order_are_refused_by_the_template(tmp_path: Path) -> None:
    chats.save(tmp_path, MISTRAL)
    with pytest.raises(BadChat, match="Conversation roles must alternate"):
        reader(tmp_path).render(chats.chat(("user", "a"), ("user", "b")), "source")


def test_the_command_line_takes_turns_and_prints_the_reply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chats.save(tmp_path, CHATML)
    asked = ["run", str(tmp_path), "--turn", "system: Be short.", "--turn", "user:dog: what?", "--max-length", "3"]
    assert command_line.main(asked) == 0
    trace = run(
        loader.load(tmp_path, {}, CPU),
        RunRequest("x", Chat((Turn("system", "Be short."), Turn("user", "dog: what?"))), decoding=Decoding(max_length=3)),
        CPU,
        "cpu",
    )
    assert capsys.readouterr().out.rstrip("\n") == trace.model["chat"]["reply"].rstrip("\n")
    assert command_line.main([*asked, "--source", "a"]) == 1
    assert "--turn: “beside --source” is not accepted" in capsys.readouterr().err
    assert command_line.main(["run", str(tmp_path), "--turn", "tool:x"]) == 1
    assert "turn: “tool:x” is not accepted. Allowed: system:…, user:…, assistant:…" in capsys.readouterr().err
