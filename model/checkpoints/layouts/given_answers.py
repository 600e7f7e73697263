"""Given answers: settings, the JSON file beside the weights, and special tokens found in a vocabulary."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from model.checkpoints.layouts.beside import answers_of
from model.checkpoints.layouts.questions import Question
from model.checkpoints.layouts.saved_settings import Said
from model.errors import BadSetting
from model.tokenizers.vocabulary import ENDS, PADS, STARTS, UNKNOWNS, place_of
from model.tokenizers.vocabulary_files import read_vocabulary

STEERING = ("layout", "candidate")
"""Settings that choose what to read; all others answer questions."""

VOCABULARIES = ("source_vocab", "target_vocab")


@dataclass(frozen=True)
class Told:
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
    origins: Mapping[str, str] = field(default_factory=dict)

    def with_answers(self, said: Mapping[str, Said]) -> "Told":
        """Adds the answers in the file itself; given settings take precedence."""
        origins = {name: f"{one.where} in the file" for name, one in said.items()}
        return replace(
            self, settings={name: one.value for name, one in said.items()} | self.settings, origins=origins | dict(self.origins)
        )

    def about(self, questions: Sequence[Question]) -> "Told":
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
        told = {name for name in read if name in asked and any(also in self.settings for also in (name, *asked[name].also))}
        found = {name: str(id_) for name, id_ in read.items() if id_ is not None and name in asked and name not in told}
        return replace(self, settings=found | self.settings, origins=dict.fromkeys(found, "the vocabulary") | dict(self.origins))


TextsOf: TypeAlias = Callable[[str, str], tuple[str, ...]]
"""Reads a vocabulary, given a setting's name and value. Raises BadSetting."""


def texts_of_a_path(setting: str, value: str) -> tuple[str, ...]:
    """The vocabulary in a file of this machine.

    Raises:
        BadSetting: it cannot be read, or is not a vocabulary.
    """
    return read_vocabulary(Path(value), setting)


def tell(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> Told:
    """Merges `settings` with the JSON file beside the weights; `settings` take precedence.

    Args:
        texts_of: reads a vocabulary that `settings` name. Paths in the JSON file are relative to its folder.

    Raises:
        DamagedFile: the JSON file is not an object of names and plain values.
        BadSetting: a vocabulary cannot be read.
    """
    beside = answers_of(path)
    beside |= {name: str(path.parent / beside[name]) for name in VOCABULARIES if name in beside}
    origins = {name: "the file of answers beside it" for name in beside if name not in settings}
    every = beside | dict(settings)
    steering = {name: value for name, value in every.items() if name in STEERING}
    others = {name: value for name, value in every.items() if name not in STEERING}
    texts = {
        name: (texts_of if name in settings else texts_of_a_path)(name, others[name]) for name in VOCABULARIES if name in others
    }
    return Told(steering, others, texts, origins)


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping.

    Raises:
        BadSetting: one has another form, or a name is given twice.
    """
    told: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in told:
            raise BadSetting(name="--set", found=text, allowed="of the form NAME=VALUE, each name once")
        told[name] = value
    return told
