"""Given answers: settings, the JSON file beside the weights, special tokens in a vocabulary; and the folders that hold both."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from model.checkpoints.layouts.layout_files import SETTING
from model.checkpoints.layouts.questions import Question
from model.checkpoints.layouts.saved_settings import SavedAnswer
from model.errors import BadSetting, DamagedFile, DoesNotFit, SeveralFiles, Words, phrase
from model.requests.layout_file import MOST_BYTES
from model.tokenizers.vocabulary import ENDS, PADS, STARTS, UNKNOWNS, place_of
from model.tokenizers.vocabulary_files import read_vocabulary
from model.trace.trace_files import ENDING

STEERING = ("layout", "candidate", SETTING)
"""Settings that choose what to read; all others answer questions."""

VOCABULARIES = ("source_vocab", "target_vocab")

FILES = (*VOCABULARIES, SETTING)
"""Settings that name files."""


@dataclass(frozen=True)
class GivenAnswers:
    """Settings and answers given for a file.

    Attributes:
        steering: the settings among STEERING.
        settings: all others, by name.
        texts: the vocabularies named by settings, by the setting's name.
        origins: sources of settings not given by the user: the answers file, a vocabulary, or keys in the weight file.
    """

    steering: dict[str, str]
    settings: dict[str, str]
    texts: Mapping[str, tuple[str, ...]]
    origins: Mapping[str, Words] = field(default_factory=dict)

    def with_answers(self, saved: Mapping[str, SavedAnswer]) -> "GivenAnswers":
        """Adds the answers in the file itself; given settings take precedence."""
        origins = {name: phrase("{where} in the file", where=answer.where) for name, answer in saved.items()}
        return replace(
            self,
            settings={name: answer.value for name, answer in saved.items()} | self.settings,
            origins=origins | dict(self.origins),
        )

    def with_special_ids(self, questions: Sequence[Question]) -> "GivenAnswers":
        """Adds special ids found in the vocabularies, such as `<pad>`; given settings take precedence."""
        asked = {question.name: question for question in questions}
        source, target = (self.texts.get(name, ()) for name in VOCABULARIES)
        written = target or source
        read = {
            "source_pad_id": place_of(source, PADS),
            "target_pad_id": place_of(target, PADS),
            "bos_id": place_of(written, STARTS),
            "eos_id": place_of(written, ENDS),
            "unk_id": place_of(written, UNKNOWNS),
        }
        # an answer under a wider name, such as pad_id for both strips, counts as well
        given = {name for name in read if name in asked and any(also in self.settings for also in (name, *asked[name].also))}
        new_ids = {name: str(id_) for name, id_ in read.items() if id_ is not None and name in asked and name not in given}
        return replace(
            self, settings=new_ids | self.settings, origins=dict.fromkeys(new_ids, phrase("the vocabulary")) | dict(self.origins)
        )


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1).decode("utf-8", errors="replace")
    except OSError as error:
        raise DoesNotFit(
            name=SETTING,
            reason=phrase("{path} is not a text file that can be read ({error})", path=path, error=type(error).__name__),
        ) from error


TextsOf: TypeAlias = Callable[[str, str], tuple[str, ...]]
"""Reads a vocabulary, given a setting's name and value. Raises BadSetting."""


def texts_of_a_path(setting: str, value: str) -> tuple[str, ...]:
    """The vocabulary in a file of this machine; of a layout file its whole text.

    Raises:
        BadSetting: it cannot be read, or is not a vocabulary.
    """
    if setting == SETTING:
        return (_text_of(Path(value)),)
    return read_vocabulary(Path(value), setting)


def gather_answers(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> GivenAnswers:
    """Merges `settings` with the JSON file beside the weights; `settings` take precedence.

    Args:
        texts_of: reads a vocabulary that `settings` name. Paths in the JSON file are relative to its folder.

    Raises:
        DamagedFile: the JSON file is not an object of names and plain values.
        BadSetting: a vocabulary cannot be read.
    """
    written = answers_of(path)
    # who writes an answers file means paths beside it
    written |= {name: str(path.parent / written[name]) for name in FILES if name in written}
    origins = {name: phrase("the file of answers beside it") for name in written if name not in settings}
    every = written | dict(settings)
    steering = {name: value for name, value in every.items() if name in STEERING}
    others = {name: value for name, value in every.items() if name not in STEERING}
    texts = {name: (texts_of if name in settings else texts_of_a_path)(name, every[name]) for name in FILES if name in every}
    return GivenAnswers(steering, others, texts, origins)


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping.

    Raises:
        BadSetting: one has another form, or a name is given twice.
    """
    settings: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in settings:
            raise BadSetting(name="--set", found=text, allowed=phrase("NAME=VALUE, each name once"))
        settings[name] = value
    return settings


# --- Files of a folder: weights, and the JSON file beside them ----------------------------------------------------------------

WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".gguf")
"""Endings of weight files."""

_OF_TRAINERS = re.compile(r"(training_args|optimizer|scheduler|scaler|rng_state(_\d+)?)\.(bin|pt|pth)")
"""Files with these endings that trainers write beside the weights, of which they hold none."""

ANSWERS = "spec.json"
"""Answers for the only weight file in a folder; those for one of several files, x.pt, are in x.spec.json."""

_NOT_RAW = ("config.json", "tokenizer.json")
"""Files of the folders that Headlight or another program saved; these describe themselves."""


def weight_files(folder: Path) -> list[Path]:
    """The weight files in a folder, sorted; traces and what trainers keep beside the weights hold none.

    Raises:
        DamagedFile: the folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if _may_hold_weights(path.name) and path.is_file())
    except OSError as error:
        raise DamagedFile(path=folder, detail=f"{type(error).__name__}") from error


def _may_hold_weights(name: str) -> bool:
    return name.endswith(WEIGHT_FILES) and not name.endswith(ENDING) and not _OF_TRAINERS.fullmatch(name)


def raw_file(folder: Path) -> Path | None:
    """The weight file of a folder of raw weights, with or without answers.

    Returns:
        None: the folder has no weights, or describes its own network.

    Raises:
        SeveralFiles: it has several weight files.
        DamagedFile: the folder cannot be read.
    """
    files = weight_files(folder)
    if any((folder / name).is_file() for name in _NOT_RAW) or _describes_a_network(folder / ANSWERS):
        return None
    if len(files) > 1:
        raise SeveralFiles(path=folder, there=", ".join(path.name for path in files))
    return files[0] if files else None


def answers_file(weights: Path) -> Path | None:
    """The answers file of a weight file; None: there is none."""
    # a spec.json beside several weight files could mean any of them
    of_this_file, shared = weights.with_name(f"{weights.stem}.{ANSWERS}"), weights.with_name(ANSWERS)
    if of_this_file.is_file():
        return of_this_file
    return shared if shared.is_file() and weight_files(weights.parent) == [weights] else None


def answers_of(weights: Path) -> dict[str, str]:
    """The answers beside a weight file; empty if the JSON file is the spec of a native folder.

    Raises:
        DamagedFile: it is not a JSON object of names and plain values.
    """
    if (path := answers_file(weights)) is None:
        return {}
    data = _json(path)
    if isinstance(data, dict) and "format" in data:
        return {}
    if not isinstance(data, dict) or not all(isinstance(value, str | int | bool) for value in data.values()):
        raise DamagedFile(path=path, detail=phrase("it holds no JSON object of setting names and plain values"))
    return {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in data.items()}


def _describes_a_network(path: Path) -> bool:
    """Whether a spec.json is that of a native folder; an unreadable one counts as native and is reported there."""
    try:
        data = _json(path) if path.is_file() else {}
    except DamagedFile:
        return True
    return not isinstance(data, dict) or "format" in data


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path=path, detail=f"{type(error).__name__}") from error
