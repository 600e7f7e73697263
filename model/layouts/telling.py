"""What was told of a file: settings by name, a spec.json beside it, and what a vocabulary says of its special tokens."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.errors import BadSetting, DamagedFile
from model.layouts.questions import Question
from model.vocabularies import ENDS, PADS, STARTS, UNKNOWNS, place_of, read_vocabulary

BESIDE = "spec.json"
"""Answers in a file beside the weights: a JSON object with the names that `--set` takes."""

STEERING = ("layout", "candidate")
"""Settings that choose what is read; all others answer questions."""

VOCABULARIES = ("source_vocab", "target_vocab")


@dataclass(frozen=True)
class Told:
    """What was told of a file.

    Attributes:
        steering: the settings among STEERING.
        settings: all others, by name.
        texts: the vocabularies that they name, by the setting's name.
    """

    steering: dict[str, str]
    settings: dict[str, str]
    texts: Mapping[str, tuple[str, ...]]

    def about(self, questions: Sequence[Question]) -> "Told":
        """With what the vocabularies say: `<pad>` among their texts is the id of padding, unless it was told otherwise."""
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
        return replace(self, settings=found | self.settings)


def tell(path: Path, settings: Mapping[str, str]) -> Told:
    """What `settings` and a spec.json beside the file say; `settings` weigh more.

    Raises:
        DamagedFile: there is such a file and it is no JSON object of names and plain values.
        BadSetting: a vocabulary cannot be read.
    """
    every = _beside(path) | dict(settings)
    steering = {name: value for name, value in every.items() if name in STEERING}
    others = {name: value for name, value in every.items() if name not in STEERING}
    texts = {name: read_vocabulary(Path(others[name]), name) for name in VOCABULARIES if name in others}
    return Told(steering, others, texts)


def _beside(path: Path) -> dict[str, str]:
    """The answers of the spec.json beside a file; paths in it are seen from its folder. One of our own folders holds no answers."""
    beside = path.with_name(BESIDE)
    if not beside.is_file():
        return {}
    try:
        data = json.loads(beside.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path=beside, detail=f"{type(error).__name__}") from error
    if not isinstance(data, dict) or not all(isinstance(value, str | int | bool) for value in data.values()):
        if isinstance(data, dict) and "format" in data:
            return {}
        raise DamagedFile(path=beside, detail="it holds no JSON object of setting names and plain values")
    told = {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in data.items()}
    return told | {name: str(beside.parent / told[name]) for name in VOCABULARIES if name in told}


def parse_settings(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping.

    Raises:
        BadSetting: one has another form, or a name comes twice.
    """
    told: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value or name in told:
            raise BadSetting(name="--set", found=text, allowed="of the form NAME=VALUE, each name once")
        told[name] = value
    return told
