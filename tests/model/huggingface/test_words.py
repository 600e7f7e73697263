"""Tokenizers of folders: readable texts, special tokens, targets; nothing is cut or padded."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from model.checkpoints import loader
from model.errors import EmptyText, TokenOutOfRange, TooManyTokens
from model.huggingface.loaded import Foreign
from model.huggingface.loading import EXAMPLE
from model.huggingface.tokenizer import LibraryTokenizer
from model.inference.run import run
from model.requests.request import RunRequest
from model.tokenizers.vocabulary import IdTokenizer
from tests import folders

CPU = torch.device("cpu")


def opened(path: Path, family: str, tokenizer: Tokenizer | None, **changes: object) -> Foreign:
    folders.save(path, family, **changes)
    if tokenizer:
        tokenizer.save(str(path / "tokenizer.json"))
    found = loader.load(path, {}, CPU)
    assert isinstance(found, Foreign)
    return found


def test_word_pieces_are_shown_as_typed_where_they_are_unknown(tmp_path: Path) -> None:
    tokens = opened(tmp_path, "bert", folders.word_pieces()).tokenizers["source"].encode("The Dogs play Chess.", "source")
    assert tokens.texts == ("[CLS]", "the", "dogs", "play", "Chess", ".", "[SEP]")
    assert tokens.special == (True, *(False,) * 5, True)
    assert tokens.unknown == (False, False, False, False, True, False, False)


def test_byte_level_texts_are_text(tmp_path: Path) -> None:
    tokenizer = opened(tmp_path, "gpt2", folders.byte_pairs(), vocab_size=300).tokenizers["source"]
    tokens = tokenizer.encode("a dog é", "source")
    assert tokens.texts == ("a", " dog", " ", r"\xc3", r"\xa9")
    assert tokenizer.text(tokens.ids) == "a dog é"
    assert tokenizer.tokens((3, 299), "source").texts == ("<|end|>", "299")
    assert tokenizer.tokens((3, 0), "source").special == (True, False)


@pytest.mark.parametrize(
    ("family", "template", "changes", "target"),
    [
        ("t5", ("", "</s>"), {"pad_token_id": 1, "decoder_start_token_id": 1, "eos_token_id": 2}, (1, 4, 5, 2)),
        ("bart", ("<s>", "</s>"), {}, (2, 0, 4, 5, 2)),
        ("m2m_100", ("<s>", "</s>"), {}, (2, 7, 4, 5, 2)),
    ],
)
def test_a_target_is_fed_as_the_library_shifts_it(
    tmp_path: Path, family: str, template: tuple[str, str], changes: dict[str, int], target: tuple[int, ...]
) -> None:
    found = opened(tmp_path, family, folders.sentence_pieces(*template), **changes)
    tokens = found.tokenizers["target"].encode("the dog", "target")
    assert tokens.ids == target
    assert tokens.texts[-3:] == (" the", " dog", "</s>")
    assert found.tokenizers["target"].ends


def test_long_and_empty_texts_are_refused(tmp_path: Path) -> None:
    found = opened(tmp_path, "bert", folders.word_pieces())
    with pytest.raises(TooManyTokens, match="has 32 tokens, but the limit is 20"):
        run(found, RunRequest("x", "dog " * 30), CPU, "CPU")
    with pytest.raises(EmptyText):
        run(found, RunRequest("x", "  "), CPU, "CPU")
    with pytest.raises(TokenOutOfRange, match=r"^The source has no token with the id 40: its ids run from 0 to 39\.$"):
        run(found, RunRequest("x", (5, 40)), CPU, "CPU")


@pytest.mark.parametrize(("family", "tokenizer"), [("bert", folders.word_pieces), ("bart", folders.sentence_pieces)])
@torch.inference_mode()
def test_a_padding_token_that_is_typed_is_a_word(tmp_path: Path, family: str, tokenizer: Callable[[], Tokenizer]) -> None:
    """The library's tokenizer marks it as one, too. Padding that is asked for behind it is hidden."""
    found = opened(tmp_path, family, made := tokenizer())
    made.no_padding()
    made.no_truncation()
    pad = found.tokenizers["source"].tokens((found.info.spec.pad_id or 0,), "").texts[0]
    typed = made.encode(f"the {pad} dog")
    assert found.info.spec.pad_id in typed.ids
    assert set(typed.attention_mask) == {1}
    for pad_to in (None, len(typed.ids) + 2):
        trace = run(
            found,
            RunRequest("x", f"the {pad} dog", "the" if "target" in found.tokenizers else None, source_pad_to=pad_to),
            CPU,
            "CPU",
        )
        site = trace.at("encoder.0.0.self")
        assert trace.tokens["source"].ids[: len(typed.ids)] == tuple(typed.ids)
        assert site.mask[0].tolist() == [True] * len(typed.ids) + [False] * (2 if pad_to else 0)
        assert (np.asarray(site.weights)[:, 0, : len(typed.ids)] > 0).all()


@pytest.mark.parametrize(("family", "example"), [("gpt2", "The animal"), ("bert", EXAMPLE)])
def test_a_folder_opens_on_an_example_that_fits_its_positions(tmp_path: Path, family: str, example: str) -> None:
    """In letters the sentence has 60 tokens, in pieces of words 15; the networks have 20 positions."""
    found = opened(tmp_path, family, folders.byte_pairs() if family == "gpt2" else folders.word_pieces(), vocab_size=300)
    assert found.info.examples == (example,)
    trace = run(found, RunRequest("x", example), CPU, "CPU")
    assert 2 <= len(trace.tokens["source"]) <= 21, "the last token that is written is not read"


def test_half_a_character_is_read(tmp_path: Path) -> None:
    tokenizer = opened(tmp_path, "gpt2", folders.byte_pairs(), vocab_size=300).tokenizers["source"]
    assert isinstance(tokenizer, LibraryTokenizer)
    assert "".join(tokenizer.encode("a\ud83d", "source").texts) == r"a\xef\xbf\xbd"


def test_without_a_tokenizer_ids_are_typed(tmp_path: Path) -> None:
    found = opened(tmp_path, "marian", None)
    assert isinstance(found.tokenizers["source"], IdTokenizer)
    assert found.tokenizers["target"].tokens((39, 6), "target").special == (True, False)


@pytest.mark.parametrize(
    ("family", "tokens", "reason"),
    [
        ("bert", 21, "the model has no more positions"),
        ("llama", 21, "the model’s own settings, or this program where they say nothing, set this limit"),
        ("t5", 4097, "no more are read here of a model without a table of positions"),
    ],
)
def test_who_sets_the_limit_of_a_text_is_said(tmp_path: Path, family: str, tokens: int, reason: str) -> None:
    """A folder has no spec.json, which was said to set it."""
    with pytest.raises(TooManyTokens, match=rf"but the limit is {tokens - 1:,}: {reason}\. Shorten it"):
        run(opened(tmp_path, family, None), RunRequest("x", (5,) * tokens), CPU, "CPU")
