"""What was typed or asked cannot be run."""

from collections.abc import Mapping
from typing import ClassVar

from model.errors.base import HeadlightError, Phrase, message, messages


class InputError(HeadlightError):
    """The input cannot be run."""


class EmptyText(InputError):
    """Nothing but blanks was given. Its strip may be known."""

    template = message("The text is empty. Type at least one word.")
    of_strip: ClassVar[Mapping[str, str]] = {
        "source": message("The source text is empty. Type at least one word."),
        "prompt": message("The prompt is empty. Type at least one word."),
        "target": message("The forced target is empty. Type at least one word, or leave it out."),
    }


class TooManyTokens(InputError):
    """A longer input than the model or this machine takes. Fields: found, allowed, reason. Its strip may be known."""

    template = message("The longest text of this run has {found:,} tokens, but the limit is {allowed:,}: {reason}. Shorten it.")
    of_strip: ClassVar[Mapping[str, str]] = {
        "source": message("The source text has {found:,} tokens, but the limit is {allowed:,}: {reason}. Shorten it."),
        "prompt": message("The prompt has {found:,} tokens, but the limit is {allowed:,}: {reason}. Shorten it."),
        "target": message("The target has {found:,} tokens, but the limit is {allowed:,}: {reason}. Shorten it."),
        "chat": message(
            "The conversation has {found:,} tokens, but the limit is {allowed:,}: {reason}. Shorten a turn, or begin a new one."
        ),
        "begin": message(
            "The beginning of the output (begin) has {found:,} ids, but there is room for {allowed:,}: {reason}. Give fewer ids, "
            "or shorten the text that comes before it."
        ),
        "both": message(
            "Prompt and target, which are read as one text, have {found:,} tokens together, but the limit is {allowed:,}: "
            "{reason}. Shorten one of them."
        ),
    }


class TooManyCharacters(InputError):
    """A text that is too long to be split into tokens. Fields: found, allowed. Its strip may be known."""

    template = message("The text has {found:,} characters, but the limit is {allowed:,}. Shorten it.")
    of_strip: ClassVar[Mapping[str, str]] = {
        "source": message("The source text has {found:,} characters, but the limit is {allowed:,}. Shorten it."),
        "prompt": message("The prompt has {found:,} characters, but the limit is {allowed:,}. Shorten it."),
        "target": message("The target has {found:,} characters, but the limit is {allowed:,}. Shorten it."),
        "chat": message(
            "The conversation has {found:,} characters, but the limit is {allowed:,}. Shorten a turn, or begin a new one."
        ),
    }


class BadChat(InputError):
    """A conversation that the model cannot read. Fields: reason."""

    template = message("The conversation cannot be run: {reason}. Change its turns, or give the model a plain text.")


class TokenOutOfRange(InputError):
    """An id that the vocabulary does not have. Fields: found, last. The last is the largest id. Its strip may be known."""

    template = message("There is no token with the id {found}: ids run from 0 to {last}.")
    of_strip: ClassVar[Mapping[str, str]] = {
        "source": message("The source has no token with the id {found}: its ids run from 0 to {last}."),
        "prompt": message("The prompt has no token with the id {found}: ids of this vocabulary run from 0 to {last}."),
        "target": message("The target has no token with the id {found}: its ids run from 0 to {last}."),
        "begin": message(
            "The beginning of the output (begin) has the id {found}, but the ids of this vocabulary run from 0 to {last}."
        ),
    }


class TokenWithoutRow(TokenOutOfRange):
    """A token that the tokenizer makes and the network does not have. Fields: token, found, last. The last is the largest id."""

    template = message(
        "The tokenizer makes the token “{token}” of this text, with the id {found}, but the network has no row for it: its ids run "
        "from 0 to {last}. Type a text without it, or use the tokenizer that was saved with these weights."
    )
    of_strip: ClassVar[Mapping[str, str]] = {}


# --- Values: each class says what is allowed ---
class BadSetting(InputError):
    """A value outside what is allowed. Fields: name, found, allowed."""

    template = message("{name}: “{found}” is not accepted. Allowed: {allowed}.")
    clause: ClassVar[str] = message("{name}: “{found}” is not accepted; allowed: {allowed}")

    @property
    def inside(self) -> Phrase:
        """What is wrong, as the reason in an error about the file that holds the value."""
        return self.fill_in(self.clause)


class UnknownField(BadSetting):
    """A field that nothing reads. Fields: name, found, allowed."""

    template = message("{name} has no field “{found}”. Allowed: {allowed}.")
    clause = message("{name} has no field “{found}”; allowed: {allowed}")


class MustNotBeSet(BadSetting):
    """A value where there must be none. Fields: name, reason."""

    template = message("{name} must not be set: {reason}.")
    clause = message("{name} must not be set: {reason}")


class DoesNotFit(BadSetting):
    """A value that does not fit something else. Fields: name, reason."""

    template = message("{name} cannot be used: {reason}.")
    clause = message("{name} cannot be used: {reason}")


# --- What a request asks of this network ---
class MissingSetting(InputError):
    """A value that cannot be left out here. Fields: name, needed."""

    template = message("{name} is missing. Needed: {needed}.")


class CannotChange(InputError):
    """An intervention in a value that this network does not expose. Fields: name, reason."""

    template = message(
        "{name} cannot be changed in this network: {reason}. Change another value, or use a model that Headlight itself runs."
    )


class CannotMeasure(InputError):
    """A network, or a target, for which nothing can be attributed. Fields: reason."""

    template = message("What matters cannot be measured here: {reason}. Choose another model or another target.")


class CannotSurvey(InputError):
    """A network, or a text, that a survey cannot measure. Fields: reason."""

    template = message("This cannot be surveyed: {reason}.")


class NoTextRan(CannotSurvey):
    """Texts of which none could be run. Fields: count, problem. The problem, that of the first one, is a whole sentence."""

    singular, template = messages(
        "The text could not be run: {problem}", "None of the {count:,} texts could be run. The first one: {problem}"
    )
    counted = "count"


class BadTexts(InputError):
    """Texts for a survey that cannot be read. Fields: file, reason."""

    template = message("The texts in {file} cannot be read: {reason}. Change the file, then try again.")


class BadSurvey(BadTexts):
    """The file of a survey that cannot be opened. Fields: file, reason."""

    template = message("The survey {file} cannot be opened: {reason}. Choose another file, or make the survey again.")


class BadEdit(InputError):
    """An edit that is none, or that names what this run does not have. Fields: edit, reason."""

    template = message("The edit “{edit}” cannot be made: {reason}. Change or remove it, then run again.")


class BadLecture(InputError):
    """A lecture file that cannot be read. Fields: lecture, line, reason."""

    template = message("The lecture {lecture} cannot be read: {reason} (line {line}). Change the file, then open it again.")


class BadClaim(InputError):
    """A claim, question or point of a lecture about what the run does not have. Fields: reason."""

    template = message("This line of the lecture does not fit the run: {reason}. Change the line, or the view of its step.")


class EditedCell(InputError):
    """The arithmetic of a head whose numbers an edit replaced. Fields: site, head, edit. The head counts from 0."""

    template = message(
        "The numbers of head {head} at {site} do not follow from the formula: the edit “{edit}” replaced some of them. "
        "Choose another head, or take the edit out."
    )


class RecordedRun(InputError):
    """A question that needs the network of an opened trace. Fields: name."""

    template = message(
        "{name} is a recording. It contains no model, so nothing else can be computed. Open the checkpoint that it was "
        "recorded from."
    )


class OpenQuestions(InputError):
    """Weights with open questions. Fields: path, layout, open, settings."""

    template = (
        "{path} (layout {layout}) leaves these settings open: {open}. Add {settings}, each with the value it was "
        "trained with, or write them into a file next to it with the same name and the ending .spec.json."
    )
    on_screen = message(
        "{path} (layout {layout}) leaves these settings open: {open}. Choose the file on the Checkpoint page and "
        "answer the questions there."
    )


class ContradictsFile(InputError):
    """An answer that the file itself contradicts. Fields: path, name, said, where, given."""

    template = message(
        "{path} itself says {name}={said} ({where}), but the answer given is {given}. Leave {name} out, or choose the file that "
        "it was meant for: with a value other than the one in training, every attention map would be wrong."
    )


class ContradictsItself(ContradictsFile):
    """A setting in a file that does not fit its tensors. Fields: path, name, said, where, allowed."""

    template = message(
        "{path} itself says {name}={said} ({where}), but its tensors do not allow that. Allowed: {allowed}. Choose the file that "
        "the setting was meant for."
    )


class NotComputedHere(ContradictsFile):
    """A setting in a file that its layout knows and Headlight does not compute. Fields: path, name, said, where, allowed."""

    template = message(
        "{path} itself says {name}={said} ({where}), which Headlight does not compute for this layout. "
        "Allowed: {allowed}. Choose another file: with a value other than the one in training, every "
        "attention map would be wrong."
    )


class NoVocabulary(InputError):
    """Text for a model without a vocabulary. Fields: strip, found."""

    template = (
        "“{found}” cannot be read: the file contains weights and no vocabulary. Give token ids separated by "
        "spaces (--{strip}-ids), or specify the vocabulary (--set {strip}_vocab=FILE)."
    )
    on_screen = message(
        "“{found}” cannot be read: this file contains weights and no vocabulary. Type token ids separated by spaces, such as 2 5 3."
    )


class NoStart(InputError):
    """Decoding without a start token. Fields: setting."""

    template = "The start token for decoding is unknown. Add --set {setting}=ID, or give the target (--target-ids)."
    on_screen = message(
        "The start token for decoding is unknown. Set {setting} on the Checkpoint page, or type the target ids into "
        "“Forced target”."
    )
