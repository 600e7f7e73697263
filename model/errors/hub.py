"""Models by their names on a Hub: why one is not there, or was not downloaded."""

from model.errors.base import message
from model.errors.inputs import InputError
from model.errors.notfound import NotFound, UnknownModel
from model.errors.unavailable import FetchFailed, Refused, Unavailable


class NotAHubPage(InputError):
    """An address that is not that of a model's page. Fields: found, hosts."""

    template = message(
        "“{found}” is not the page of a model on the Hub ({hosts}). Paste the address of such a page, or "
        "give a name such as gpt2, or a path."
    )


class HubOff(UnknownModel):
    """The Hub was asked for, but this machine’s settings forbid it. Fields: model."""

    template = message(
        "“{model}” was not searched for, because opening models by their names on the Hub is switched off "
        "here (HEADLIGHT_HUB=off). Choose a model from the list."
    )


class NotFetched(UnknownModel):
    """A model that would have to be downloaded first. Fields: model, near."""

    template = "“{model}” is not on this machine. Download it: python -m model fetch {model}. Similar names here: {near}."
    on_screen = message(
        "“{model}” is not on this machine, and this page may not download it. On the server’s command line: "
        "python -m model fetch {model}. Similar names on this machine: {near}."
    )


class NoSuchHubModel(NotFound):
    """The Hub knows no such model, or does not show it. Fields: model, near."""

    template = message(
        "The Hub shows no model “{model}”: the name is wrong, or the model is private. Correct the name, or "
        "log in with hf auth login or HF_TOKEN. Similar names on this machine: {near}."
    )


class NoSuchRevision(NotFound):
    """Fields: model, revision."""

    template = message("The model {model} has no revision “{revision}”. Give a branch, a tag or a commit, or omit “@{revision}”.")


class GatedModel(Refused):
    """Its authors give it only to those who accept their terms. Fields: model, address."""

    template = message(
        "{model} is available only to those who accept its authors’ terms. Accept them at {address}, then "
        "log in on this machine with hf auth login, or set HF_TOKEN."
    )


class HubRefused(Refused):
    """The Hub answers with an error. Fields: host, model, status, advice."""

    template = message("The Hub at {host} did not provide {model} (status {status}): {advice}.")


class HubAway(Unavailable):
    """No answer. Fields: host, model."""

    template = message(
        "The Hub at {host} cannot be reached, so {model} was not downloaded. Check the network (HF_ENDPOINT "
        "names another Hub); models on this machine run without it."
    )


class NoDisk(FetchFailed):
    """It does not fit the disk. Fields: model, needed, there, folder."""

    template = message(
        "{model} needs {needed:,.1f} GB of disk space, and {folder} has {there:,.1f} GB left. Free some "
        "space, or set HF_HOME to a folder on another disk."
    )


class NoMemoryFor(FetchFailed):
    """Its weights do not fit the machine. Fields: model, needed, there."""

    template = message(
        "The weights of {model} need {needed:,.1f} GB of memory, and this machine has {there:,.1f} GB. Choose a smaller model, or "
        "a larger machine."
    )


class CannotRun(FetchFailed):
    """A model that would not run here. Fields: model, reason."""

    template = message(
        "{model} does not run in Headlight: {reason}. A program of your own that runs it can be recorded with headlight.py "
        "(docs/record.md)."
    )
