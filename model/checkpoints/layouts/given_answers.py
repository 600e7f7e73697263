"""Given answers: settings, the JSON file beside the weights, and special tokens found in a vocabulary."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from model.checkpoints.layouts.layout_files import SETTING
from model.checkpoints.layouts.questions import Question
from model.checkpoints.layouts.raw_folder import answers_of
from model.checkpoints.layouts.saved_settings import SavedAnswer
from model.errors import BadSetting, DoesNotFit, Words, phrase
from model.spec.layout_file import MOST_BYTES
from model.tokenizers.vocabulary import ENDS, PADS, STARTS, UNKNOWNS, place_of
from model.tokenizers.vocabulary_files import read_vocabulary

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
        origins = {name: phrase("{where} in the file", where=one.where) for name, one in saved.items()}
        return replace(
            self, settings={name: one.value for name, one in saved.items()} | self.settings, origins=origins | dict(self.origins)
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
        given = {name for name in read if name in asked and any(also in self.settings for also in (name, *asked[name].also))}
        found = {name: str(id_) for name, id_ in read.items() if id_ is not None and name in asked and name not in given}
        return replace(
            self, settings=found | self.settings, origins=dict.fromkeys(found, phrase("the vocabulary")) | dict(self.origins)
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
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in found:
            raise BadSetting(name="--set", found=text, allowed=phrase("NAME=VALUE, each name once"))
        found[name] = value
    return found
