"""Errors, each with a sentence that says what to do.

    HeadlightError
    ├── InputError            what was typed or asked cannot be run
    │   ├── EmptyText           nothing but blanks
    │   ├── TooManyTokens       longer than the model has positions, or than a limit
    │   ├── TooManyCharacters   a text too long to be split into tokens
    │   ├── TokenOutOfRange     an id that the vocabulary does not have
    │   ├── BadSetting          a decoding value, option or combination outside what is allowed
    │   ├── MissingSetting      a value that cannot be left out here
    │   ├── CannotChange        an intervention in a value that this network does not expose
    │   ├── CannotMeasure       a network, or a target, for which nothing can be attributed
    │   ├── BadEdit             an edit that is none, or that names what is not there
    │   ├── BadLecture          a lecture file that cannot be read
    │   ├── BadClaim            a claim about what a run does not have
    │   ├── EditedCell          the arithmetic of a head whose numbers an edit replaced
    │   ├── RecordedRun         a question that needs the network of an opened trace
    │   ├── OpenQuestions       weights with open questions
    │   ├── ContradictsFile     an answer that the file itself contradicts
    │   ├── NoVocabulary        text for a model without a vocabulary
    │   └── NoStart             decoding without a start token
    ├── NotFound              a name that does not exist here
    │   ├── UnknownModel
    │   ├── UnknownSite
    │   ├── UnknownHead
    │   ├── UnknownHypothesis
    │   ├── UnknownStage
    │   └── UnknownTensor
    ├── CheckpointError       a folder or file that cannot be used
    │   ├── MissingFile
    │   ├── DamagedFile
    │   ├── ShapeMismatch
    │   ├── UnknownLayout       names of weights that no known layout has
    │   ├── BadLayoutFile       a layout file that is none, or that does not fit the weights
    │   ├── SeveralLayouts      weights that match several layouts, or several state dicts
    │   ├── SeveralFiles        a folder with several weight files
    │   ├── IncompleteWeights   weights of a known layout, some missing or of wrong shapes
    │   ├── UnsupportedModel    a folder of transformers that would compute something else here
    │   ├── NotACheckpoint      a file of another kind
    │   ├── BadTrace            a file that claims to be a trace and contradicts itself
    │   ├── UnsafeFile          a pickle that calls something
    │   ├── WholeObject         a pickled model instead of its weights
    │   ├── UnsoundFile         contents that contradict the file's size
    │   ├── UnreadableNumbers   an unsupported dtype or byte order
    │   ├── NoWeights           no state dict in the file
    │   ├── OverLimit           too large or too slow to open
    │   ├── OpeningEnded        the process that looks into files was ended from outside
    │   └── CannotExport        a network that a native folder cannot store
    ├── TokenizerFailed       an external tokenizer failed
    │   ├── NoTokenizer         no supported tokenizer
    │   ├── TokenizerTooSlow    it took too long
    │   ├── TokenizerTooLarge   it needed too much memory
    │   └── TokenizerDied       it failed in another way
    ├── Unavailable           the request is valid, but the engine cannot answer now
    │   ├── Busy                too many requests wait
    │   ├── Superseded          a newer request of the same session replaced it
    │   ├── StillOpening        the files of a model are being opened
    │   ├── TookTooLong         no answer before the deadline
    │   ├── OutOfMemory         not enough memory for the run
    │   ├── RunFailed           it ended inside a library
    │   ├── NoRoom              not enough memory for the network
    │   ├── EngineAway          the engine server does not answer
    │   ├── EngineMismatch      another protocol version, or changed weights
    │   └── Refused             the server refuses: no token, too large, too often, or switched off
    ├── WireError             bytes that are not a trace of a known schema
    └── DataError             a corpus that is missing or does not fit its layout

Each class has one sentence with named placeholders: what was asked, what was found, what is allowed, what to do. The error carries
the fields, so that a screen can show the sentence in another language; if the sentence mentions the command line, screens show
`on_screen` instead. If it counts something, `singular` is the sentence for 1, and `counted` the field with the number.

May import: nothing of this project.
"""

from collections.abc import Mapping
from typing import Any

from model.errors.checkpoint import BadLayoutFile as BadLayoutFile
from model.errors.checkpoint import BadTrace as BadTrace
from model.errors.checkpoint import CannotExport as CannotExport
from model.errors.checkpoint import CheckpointError as CheckpointError
from model.errors.checkpoint import DamagedFile as DamagedFile
from model.errors.checkpoint import IncompleteWeights as IncompleteWeights
from model.errors.checkpoint import MissingFile as MissingFile
from model.errors.checkpoint import NotACheckpoint as NotACheckpoint
from model.errors.checkpoint import NoWeights as NoWeights
from model.errors.checkpoint import OpeningEnded as OpeningEnded
from model.errors.checkpoint import OverLimit as OverLimit
from model.errors.checkpoint import SeveralFiles as SeveralFiles
from model.errors.checkpoint import SeveralLayouts as SeveralLayouts
from model.errors.checkpoint import ShapeMismatch as ShapeMismatch
from model.errors.checkpoint import UnknownLayout as UnknownLayout
from model.errors.checkpoint import UnreadableNumbers as UnreadableNumbers
from model.errors.checkpoint import UnsafeFile as UnsafeFile
from model.errors.checkpoint import UnsoundFile as UnsoundFile
from model.errors.checkpoint import UnsupportedModel as UnsupportedModel
from model.errors.checkpoint import WholeObject as WholeObject
from model.errors.notfound import NotFound as NotFound
from model.errors.notfound import UnknownHead as UnknownHead
from model.errors.notfound import UnknownHypothesis as UnknownHypothesis
from model.errors.notfound import UnknownModel as UnknownModel
from model.errors.notfound import UnknownSite as UnknownSite
from model.errors.notfound import UnknownStage as UnknownStage
from model.errors.notfound import UnknownTensor as UnknownTensor
from model.errors.phrase import Phrase as Phrase
from model.errors.phrase import Words as Words
from model.errors.phrase import counted as counted
from model.errors.phrase import gap_of as gap_of
from model.errors.phrase import in_english as in_english
from model.errors.phrase import phrase as phrase
from model.errors.root import HeadlightError as HeadlightError
from model.errors.tokenizing import NoTokenizer as NoTokenizer
from model.errors.tokenizing import TokenizerDied as TokenizerDied
from model.errors.tokenizing import TokenizerFailed as TokenizerFailed
from model.errors.tokenizing import TokenizerTooLarge as TokenizerTooLarge
from model.errors.tokenizing import TokenizerTooSlow as TokenizerTooSlow
from model.errors.unavailable import Busy as Busy
from model.errors.unavailable import EngineAway as EngineAway
from model.errors.unavailable import EngineMismatch as EngineMismatch
from model.errors.unavailable import NoRoom as NoRoom
from model.errors.unavailable import OutOfMemory as OutOfMemory
from model.errors.unavailable import Refused as Refused
from model.errors.unavailable import RunFailed as RunFailed
from model.errors.unavailable import StillOpening as StillOpening
from model.errors.unavailable import Superseded as Superseded
from model.errors.unavailable import TookTooLong as TookTooLong
from model.errors.unavailable import Unavailable as Unavailable


def from_json(data: Mapping[str, Any]) -> HeadlightError:
    """The error in JSON values, also those of another version.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: they are no error.
    """
    name, fields = str(data["error"]), {name: gap_of(value) for name, value in data["fields"].items()}
    kind = globals().get(name)
    if not isinstance(kind, type) or not issubclass(kind, HeadlightError):
        return HeadlightError(detail=phrase("An error of another version of Headlight: {name}.", name=name))
    return kind(**fields)


class InputError(HeadlightError):
    """The input cannot be run."""


class EmptyText(InputError):
    """Nothing but blanks was given. Fields: what."""

    template = "The {what} is empty. Type at least one word."


class TooManyTokens(InputError):
    """A longer input than the model or this machine takes. Fields: what, found, allowed, reason."""

    template = "The {what} has {found} tokens, but the limit is {allowed} ({reason}). Shorten it."


class TooManyCharacters(InputError):
    """A text that is too long to be split into tokens. Fields: what, found, allowed."""

    template = "The {what} has {found} characters, but the limit is {allowed}. Shorten it."


class TokenOutOfRange(InputError):
    """An id that the vocabulary does not have. Fields: what, found, last. The last is the largest id."""

    template = "The {what} contains the token id {found}, but valid ids run from 0 to {last}."


class BadSetting(InputError):
    """A value outside what is allowed. Fields: name, found, allowed."""

    template = "{name}: “{found}” is not accepted. Allowed: {allowed}."


class MissingSetting(InputError):
    """A value that cannot be left out here. Fields: name, needed."""

    template = "{name} is missing: give {needed}, and run again."


class CannotChange(InputError):
    """An intervention in a value that this network does not expose. Fields: name, reason."""

    template = (
        "{name} cannot be changed in this network: {reason}. Change another value, or use a model that Headlight itself runs."
    )


class CannotMeasure(InputError):
    """A network, or a target, for which nothing can be attributed. Fields: reason."""

    template = "What matters cannot be measured here: {reason}. Choose another model or another target."


class BadEdit(InputError):
    """An edit that is none, or that names what this run does not have. Fields: edit, reason."""

    template = "The edit “{edit}” cannot be made: {reason}. Change or remove it, then run again."


class BadLecture(InputError):
    """A lecture file that cannot be read. Fields: lecture, line, reason."""

    template = "The lecture {lecture} cannot be read: {reason} (line {line}). Change the file, then open it again."


class BadClaim(InputError):
    """A claim, question or point of a lecture about what the run does not have. Fields: reason."""

    template = "This line of the lecture does not fit the run: {reason}. Change the line, or the view of its step."


class EditedCell(InputError):
    """The arithmetic of a head whose numbers an edit replaced. Fields: site, head, edit. The head counts from 0."""

    template = (
        "The numbers of head {head} at {site} do not follow from the formula: the edit “{edit}” replaced some of them. "
        "Choose another head, or take the edit out."
    )


class RecordedRun(InputError):
    """A question that needs the network of an opened trace. Fields: name, asked."""

    template = (
        "{name} is a recorded run, and its network is not here: {asked} cannot be computed. "
        "Open the checkpoint that the run was recorded from."
    )


class OpenQuestions(InputError):
    """Weights with open questions. Fields: path, layout, open, settings."""

    template = (
        "{path} (layout {layout}) leaves these settings open: {open}. Add {settings}, each with the value it was "
        "trained with, or write them into a file next to it with the same name and the ending .spec.json."
    )
    on_screen = (
        "{path} (layout {layout}) leaves these settings open: {open}. Choose the file on the Checkpoint page and "
        "answer the questions there."
    )


class ContradictsFile(InputError):
    """An answer that the file itself contradicts. Fields: path, name, said, where, found."""

    template = (
        "{path} itself says {name}={said} ({where}), but {found}. Leave {name} out, or choose the file that it was "
        "meant for: with another value than in training, every attention map would be wrong."
    )


class NoVocabulary(InputError):
    """Text for a model without a vocabulary. Fields: strip, found."""

    template = (
        "“{found}” cannot be read: the file contains weights and no vocabulary. Give token ids separated by "
        "spaces (--{strip}-ids), or specify the vocabulary (--set {strip}_vocab=FILE)."
    )
    on_screen = (
        "“{found}” cannot be read: this file contains weights and no vocabulary. Type token ids separated by spaces, such as 2 5 3."
    )


class NoStart(InputError):
    """Decoding without a start token. Fields: setting."""

    template = "The start token for decoding is unknown. Add --set {setting}=ID, or give the target (--target-ids)."
    on_screen = (
        "The start token for decoding is unknown. Set {setting} on the Checkpoint page, or type the target ids into "
        "“Forced target”."
    )


class WireError(HeadlightError):
    """Bytes that are not a trace of a known schema. Fields: detail."""

    template = "This is not a trace that this version of Headlight can read ({detail}). Save it again with this version."


class DataError(HeadlightError):
    """A corpus that is missing or does not fit its layout. Fields: path, detail, do."""

    template = "The data at {path} cannot be used ({detail}): {do}."
