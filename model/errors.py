"""Everything that can go wrong in words a person can act on.

    HeadlightError
    ├── InputError            what was typed or asked cannot be run
    │   ├── EmptyText           nothing but blanks
    │   ├── TooManyTokens       longer than the model has positions, or than a limit
    │   ├── TokenOutOfRange     an id that the vocabulary does not have
    │   └── BadSetting          a decoding value, option or combination outside what is allowed
    ├── NotFound              a name that does not exist here
    │   ├── UnknownModel
    │   ├── UnknownSite
    │   ├── UnknownHead
    │   └── UnknownTensor
    ├── CheckpointError       a folder or file that cannot be used
    │   ├── MissingFile
    │   ├── DamagedFile
    │   └── ShapeMismatch
    ├── WireError             bytes that are no trace of a schema known here
    └── DataError             a corpus that is missing or does not fit its layout

Each class owns one whole sentence with named gaps: what was asked, what was found, what is allowed, what to do. The fields
travel with the error, so that a screen can say the same sentence in another language.
"""

from typing import ClassVar


class HeadlightError(Exception):
    """The root. `str(error)` is one line, fit to be shown to whoever asked.

    Args:
        fields: the values for the gaps of the class's `template`.
    """

    template: ClassVar[str] = "{detail}"

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(" ".join(self.template.format(**fields).split()))


class InputError(HeadlightError):
    """What was typed or asked cannot be run."""


class EmptyText(InputError):
    """Nothing but blanks was given. Fields: what."""

    template = "The {what} is empty: there is nothing to run; type at least one word."


class TooManyTokens(InputError):
    """A longer input than the model or this machine takes. Fields: what, found, allowed, reason."""

    template = "The {what} has {found} tokens, but at most {allowed} fit ({reason}): shorten it."


class TokenOutOfRange(InputError):
    """An id that the vocabulary does not have. Fields: what, found, size."""

    template = "The {what} holds the token id {found}, but the vocabulary has the ids 0 to {size} - 1: use one of those."


class BadSetting(InputError):
    """A value outside what is allowed. Fields: name, found, allowed."""

    template = "{name} is {found!r}, but it must be {allowed}: change it and run again."


class NotFound(HeadlightError):
    """A name that does not exist here."""


class UnknownModel(NotFound):
    """Fields: asked, there."""

    template = "There is no model {asked!r} here; there is: {there}. Choose one of these."


class UnknownSite(NotFound):
    """Fields: asked, there."""

    template = "There is no attention site {asked!r} in this run; there is: {there}. Choose one of these."


class UnknownHead(NotFound):
    """Fields: asked, site, heads."""

    template = "There is no head {asked} at {site}, which has {heads} heads, counted from 0: choose one of these."


class UnknownTensor(NotFound):
    """Fields: asked, there."""

    template = "There is no tensor {asked!r} here; there is: {there}. Choose one of these."


class CheckpointError(HeadlightError):
    """A checkpoint folder or file that cannot be used."""


class MissingFile(CheckpointError):
    """Fields: path, needed."""

    template = "{path} is not there; a checkpoint folder needs {needed}: restore the file or choose another folder."


class DamagedFile(CheckpointError):
    """Fields: path, detail."""

    template = "{path} cannot be read ({detail}): restore it from a copy or train it anew."


class ShapeMismatch(CheckpointError):
    """The weights are not those that the spec describes. Fields: path, detail."""

    template = "{path} does not hold the weights that its spec.json describes ({detail}): use the files of one training run."


class WireError(HeadlightError):
    """Bytes that are no trace of a schema known here. Fields: detail."""

    template = "This is no trace that can be read here ({detail}): save it anew with this version of Headlight."


class DataError(HeadlightError):
    """A corpus that is missing or does not fit its layout. Fields: path, detail, do."""

    template = "The data at {path} cannot be used ({detail}): {do}."
