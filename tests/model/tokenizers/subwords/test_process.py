"""Foreign tokenizers in their process: they cut as in place, and one that panics, hangs or swells harms nobody else."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tokenizers import Tokenizer

from model.errors import DamagedFile, TokenizerDied, TokenizerFailed, TokenizerTooLarge, TokenizerTooSlow, TooManyTokens
from model.safe_loading import worker
from model.safe_loading.worker import ROOT
from model.tokenizers.subwords import limits, process
from model.tokenizers.subwords.process import TokenizerProcess
from tests import folders
from tests.bad_tokenizers import hangs, panics, swells, words
from tests.patience import HANG_S

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux grants a limit on memory: run there")
on_posix = pytest.mark.skipif(os.name != "posix", reason="signals and process numbers as POSIX has them: run on Linux or macOS")
TEXTS = (
    "the dogs play",
    "The Dogs play Chess. é 🐕\n\ttwo",
    "snow" * 200,
    "…",
    "a dog\ud7ff",
    "<s> [CLS] <|end|>",
    "二 dogs",
    "\x00",
)


def opened(tmp_path: Path, library: Tokenizer) -> TokenizerProcess:
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    return TokenizerProcess(path, {"path": str(path)}, 1 << 20)


@pytest.mark.parametrize("library", [folders.word_pieces, folders.byte_pairs, folders.sentence_pieces, words])
def test_a_text_is_cut_as_in_place(tmp_path: Path, library: Callable[[], Tokenizer]) -> None:
    ours, theirs = opened(tmp_path, library()), Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    assert ours.tokens == {id_: token for token, id_ in theirs.get_vocab().items()}
    for text in TEXTS:
        for special in (True, False):
            found, wanted = ours.encode(text, "source", special), theirs.encode(text, add_special_tokens=special)
            assert found.ids == tuple(wanted.ids), text
            assert found.typed == tuple(text[first:last] for first, last in wanted.offsets), text
        assert ours.decode(wanted.ids) == theirs.decode(wanted.ids)


def test_a_panic_of_the_library_is_a_sentence_and_the_next_text_is_cut(tmp_path: Path) -> None:
    found = opened(tmp_path, panics())
    for _ in range(2):
        with pytest.raises(TokenizerDied, match=rf"The tokenizer {tmp_path.name}/tokenizer.json failed on this text: Panic"):
            found.encode("x" * 40, "source")
        assert found.encode("x", "source").ids == (1,)


@on_posix
def test_a_tokenizer_that_takes_too_long_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS_TO_CUT", 1)
    found = opened(tmp_path, hangs())
    pid = found.pid
    assert pid is not None
    with pytest.raises(TokenizerTooSlow, match=r"took more than 1 s and was stopped"):
        found.encode("x" * 1_000_000, "source")
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    monkeypatch.undo()
    assert found.encode("x", "source").ids == (1,)


@on_linux
def test_a_tokenizer_that_takes_too_much_memory_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_MEMORY", 512 << 20)
    found = opened(tmp_path, swells())
    with pytest.raises(TokenizerTooLarge, match=r"needed more than the 536,870,912 bytes of memory"):
        found.encode("a", "source")
    assert found.encode("x", "source").ids == (1,)


def test_more_tokens_than_are_taken_are_refused(tmp_path: Path) -> None:
    found, many = opened(tmp_path, words()), limits.MAX_TOKENS + 1
    said = f"has {many:,} tokens, but the limit is {limits.MAX_TOKENS:,}: an external tokenizer may return no more. Shorten it."
    with pytest.raises(TooManyTokens, match=f"^The target {re.escape(said)}$"):
        found.encode("x " * many, "target")
    assert len(found.encode("x " * (many - 1), "target").ids) == many - 1


@on_posix
def test_another_tokenizer_answers_while_one_hangs(tmp_path: Path) -> None:
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
    bad, good = opened(tmp_path / "bad", hangs()), opened(tmp_path / "good", words())
    failed: list[TokenizerFailed] = []

    def ask() -> None:
        try:
            bad.encode("x" * 1_000_000, "source")
        except TokenizerFailed as error:
            failed.append(error)

    hanging = Thread(target=ask)
    hanging.start()
    for _ in range(20):
        assert good.encode("x", "source").ids == (1,)
    assert hanging.is_alive()
    assert bad.pid is not None
    os.kill(bad.pid, signal.SIGTERM)
    hanging.join(HANG_S)
    assert [type(error) for error in failed] == [TokenizerDied]


@on_posix
def test_a_process_that_was_killed_is_started_anew(tmp_path: Path) -> None:
    found = opened(tmp_path, words())
    assert found.pid is not None
    os.kill(found.pid, signal.SIGTERM)
    os.waitid(os.P_PID, found.pid, os.WEXITED | os.WNOWAIT)
    assert found.encode("x", "source").ids == (1,)


def alive(pid: int | None) -> bool:
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    return pid is not None


def test_only_so_many_processes_wait_for_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_IDLE", 2)
    all_of_them = [opened(tmp_path, words()) for _ in range(4)]
    assert [one.pid is not None for one in all_of_them] == [False, False, True, True]
    assert all_of_them[0].encode("x", "source").ids == (1,)
    assert [one.pid is not None for one in all_of_them] == [True, False, False, True]


@on_posix
def test_a_tokenizer_that_nobody_has_any_more_leaves_no_process(tmp_path: Path) -> None:
    found = opened(tmp_path, words())
    pid = found.pid
    assert alive(pid)
    del found
    gc.collect()
    assert not alive(pid)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "the tokenizers library says: "),
        ("[]", "it holds no JSON object"),
        ("\x00", "JSONDecodeError"),
        (json.dumps({"model": {"type": "Nothing"}}), "the tokenizers library says: "),
    ],
)
def test_rules_that_cannot_be_read_are_a_damaged_file(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(DamagedFile, match=said) as refused:
        TokenizerProcess(path, {"path": str(path)}, 10)
    assert refused.value.fields["path"] == path


def test_the_process_cannot_import_torch_and_writes_no_file(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="only systems with the module resource limit a process: run on Linux or macOS")
    code = process.CHILD.replace(
        "main(int(memory))", "import model.tokenizers.subwords.child as c; c.bounds.limit_this_process(1 << 30)\n{}"
    )
    for attempt, said in (
        ("import torch", "ModuleNotFoundError"),
        (f"open({str(tmp_path / 'a')!r}, 'wb', 0).write(b'a')", "too large"),
    ):
        command = [*process._command()]
        command[command.index("-c") + 1] = code.format(attempt)
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert said in done.stderr
