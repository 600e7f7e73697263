"""Errors, each with a sentence that says what to do.

    HeadlightError
    ├── InputError            what was typed or asked cannot be run
    │   ├── EmptyText           nothing but blanks
    │   ├── TooManyTokens       longer than the model has positions, or than a limit
    │   ├── TooManyCharacters   a text too long to be split into tokens
    │   ├── BadChat             a conversation that the model, or its template, does not read
    │   ├── TokenOutOfRange     an id that the vocabulary does not have
    │   │   └── TokenWithoutRow   a token of the tokenizer that the network does not have
    │   ├── BadSetting          a decoding value, option or combination outside what is allowed
    │   │   ├── UnknownField      a field that nothing reads
    │   │   ├── MustNotBeSet      a value where there must be none
    │   │   └── DoesNotFit        a value that does not fit something else
    │   ├── MissingSetting      a value that cannot be left out here
    │   ├── CannotChange        an intervention in a value that this network does not expose
    │   ├── CannotMeasure       a network, or a target, for which nothing can be attributed
    │   ├── CannotSurvey        a network, or a text, that a survey cannot measure
    │   │   └── NoTextRan         texts of which none could be run
    │   ├── BadTexts            texts for a survey that cannot be read
    │   │   └── BadSurvey         the file of a survey that cannot be opened
    │   ├── BadEdit             an edit that is none, or that names what is not there
    │   ├── BadLecture          a lecture file that cannot be read
    │   ├── BadClaim            a claim about what a run does not have
    │   ├── EditedCell          the arithmetic of a head whose numbers an edit replaced
    │   ├── RecordedRun         a question that needs the network of an opened trace
    │   ├── OpenQuestions       weights with open questions
    │   ├── ContradictsFile     an answer that the file itself contradicts
    │   │   ├── ContradictsItself a setting in a file that does not fit its tensors
    │   │   └── NotComputedHere   a setting in a file that is not computed here
    │   ├── NoVocabulary        text for a model without a vocabulary
    │   ├── NoStart             decoding without a start token
    │   └── NotAHubPage         an address that is not that of a model's page
    ├── NotFound              a name that does not exist here
    │   ├── UnknownModel
    │   │   ├── NotFetched        a model of a Hub that is not on this machine
    │   │   └── HubOff            a name of a Hub where the Hub is switched off
    │   ├── UnknownSite
    │   ├── UnknownHead
    │   ├── UnknownHypothesis
    │   ├── UnknownStage
    │   ├── UnknownImage      an image that was not sent, or was dropped
    │   ├── UnknownSound      the same of a sound
    │   ├── NoSuchHubModel      a model that the Hub does not show
    │   ├── NoSuchRevision      a revision that a model of a Hub does not have
    │   └── UnknownTensor
    │       ├── NotRecorded       a tensor that a run could have recorded
    │       ├── NotTakenApart     the parts of a number where another program ran the network
    │       └── NoArithmetic      the arithmetic of a cell where a part of it is not known
    ├── CheckpointError       a folder or file that cannot be used
    │   ├── MissingFile
    │   ├── DamagedFile
    │   ├── ShapeMismatch
    │   ├── NothingToOpen       a folder without a network
    │   ├── FolderAbove         a folder of folders with networks
    │   ├── OnlyAnAdapter       a change to the weights of a network, without the network
    │   ├── UnknownLayout       names of weights that no known layout has
    │   │   ├── NearLayout        names of which at least half have a place in a layout
    │   │   └── LibraryWeights    weights of a network of transformers without its settings
    │   ├── BadLayoutFile       a layout file that is none, or that does not fit the weights
    │   ├── SeveralLayouts      weights that match several layouts
    │   │   └── SeveralTables     several state dicts in one file
    │   ├── SeveralFiles        a folder with several weight files
    │   ├── IncompleteWeights   weights of a known layout, some missing or of wrong shapes
    │   │   └── OtherWeights      weights of a folder of transformers that do not fill its class
    │   ├── RefusedByLibrary    a folder that transformers does not open
    │   ├── UnsupportedModel    a folder of transformers that would compute something else here
    │   │   ├── CannotRunHere     a folder of transformers in which a short input cannot be run
    │   │   └── UnsupportedGguf   a GGUF file whose network does not run here
    │   ├── BadGguf             a GGUF file that contradicts itself or a limit
    │   ├── NotACheckpoint      a file of another kind
    │   │   ├── PathNotFound      nothing is there
    │   │   └── NotReadable       this program may not read it
    │   ├── BadTrace            a file that claims to be a trace and contradicts itself
    │   ├── UnsafeFile          a pickle that calls something
    │   ├── WholeObject         a pickled model instead of its weights
    │   ├── UnsoundFile         contents that contradict the file's size
    │   ├── UnreadableNumbers   an unsupported dtype or byte order
    │   ├── NoWeights           no state dict in the file
    │   │   └── NumpyArrays       arrays of NumPy instead of tensors
    │   ├── BadImage            an image that is not read
    │   ├── BadSound            a sound that is not read
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
    │   │   └── NoMemoryLeft      at an unknown place
    │   ├── RunFailed           it ended inside a library
    │   ├── NoRoom              not enough memory for the network
    │   ├── FetchFailed         a model that could not be downloaded
    │   │   ├── NoDisk            it does not fit the disk
    │   │   ├── NoMemoryFor       it does not fit the memory
    │   │   └── CannotRun         it does not run here
    │   ├── HubAway             the Hub cannot be reached
    │   ├── EngineAway          the engine server does not answer
    │   │   └── EngineStopped     the engine of this process is being closed
    │   ├── EngineMismatch      another protocol version
    │   │   ├── NotAnEngine       what answers is no engine server
    │   │   └── WeightsChanged    weights that changed between two runs
    │   └── Refused             the server refuses
    │       ├── WrongToken        no token, or another one
    │       ├── NoTokenSet        calls from elsewhere to a host without a token
    │       ├── TooFast           too many requests
    │       │   └── WorkedEnough    the caller's last questions took long
    │       ├── TooCostly         a question that takes too long for this server
    │       ├── TooLarge          a body that is too long
    │       ├── TooLong           an input with too many tokens for this server
    │       ├── TooMuchToWrite    a decoding that could write too much
    │       ├── UnknownHost       a request under a name that this server does not answer to
    │       ├── NotForPages       a request of a page in a browser
    │       ├── NoUploads         a host that takes no files
    │       ├── HubRefused        the Hub answers with an error
    │       ├── GatedModel        a model whose terms must be accepted first
    │       └── OtherMachine      a path for an engine on another machine
    ├── WireError             bytes that are not a trace of a known schema
    └── DataError             a corpus that is missing or does not fit its layout

Each class has one sentence with named placeholders: what was asked, what was found, what is allowed, what to do. The error carries
the fields, so that a screen can show the sentence in another language; if the sentence mentions the command line, screens show
`on_screen` instead. If it can be about several texts, `of_strip` has a sentence for each, chosen by the field `strip`. If it counts
something, `singular` is the sentence for 1, and `counted` the field with the number.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from model.errors.base import HeadlightError as HeadlightError
from model.errors.base import Phrase as Phrase
from model.errors.base import Words as Words
from model.errors.base import counted as counted
from model.errors.base import filling as filling
from model.errors.base import gap_of as gap_of
from model.errors.base import in_english as in_english
from model.errors.base import message as message
from model.errors.base import phrase as phrase
from model.errors.base import rewritten as rewritten
from model.errors.checkpoint import *  # noqa: F403  # all of its errors
from model.errors.hub import *  # noqa: F403  # all of its errors
from model.errors.inputs import *  # noqa: F403  # all of its errors
from model.errors.notfound import *  # noqa: F403  # all of its errors
from model.errors.tokenizing import *  # noqa: F403  # all of its errors
from model.errors.unavailable import *  # noqa: F403  # all of its errors


def from_json(data: Mapping[str, Any]) -> HeadlightError:
    """The error in JSON values. One of another version, whose class or fields are not known here, is told by its name.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: they are no error.
    """
    name, fields = str(data["error"]), {name: gap_of(value) for name, value in data["fields"].items()}
    kind = globals().get(name)
    if isinstance(kind, type) and issubclass(kind, HeadlightError):
        with suppress(ValueError):  # a field of its sentence is missing
            return kind(**fields)
    return HeadlightError(detail=phrase("An error of another version of Headlight: {name}.", name=name))


class WireError(HeadlightError):
    """Bytes that are not a trace of a known schema. Fields: detail."""

    template = message("This is not a trace that this version of Headlight can read: {detail}. Save it again with this version.")


class DataError(HeadlightError):
    """A corpus that is missing or does not fit its layout, on the command line alone. Fields: path, detail, do."""

    template = "The data at {path} cannot be used ({detail}): {do}."
