"""The request is valid, but the engine cannot answer now: errors of queues, devices and servers."""

from collections.abc import Mapping
from typing import ClassVar

from model.errors.base import HeadlightError, message, messages


class Unavailable(HeadlightError):
    """The request is valid, but the engine cannot answer now."""


class Busy(Unavailable):
    """Too many requests wait. Fields: ahead."""

    singular, template = messages(
        "The engine is busy: {ahead} request is ahead of yours. Try again in a few seconds.",
        "The engine is busy: {ahead} requests are ahead of yours. Try again in a few seconds.",
    )
    counted = "ahead"


class Superseded(Unavailable):
    """A newer request of the same session replaced it. Fields: model."""

    template = message("This run of {model} was canceled because you started a newer one. See the newer result.")


class StillOpening(Unavailable):
    """The files of a model take long to open; they are opened meanwhile. Fields: model."""

    template = message("{model} is still being opened. Reload the page in a minute.")


class TookTooLong(Unavailable):
    """No answer before the deadline. Fields: seconds."""

    template = message("No answer within {seconds} s. Try again, or ask for less: a shorter text or fewer new tokens.")


class OutOfMemory(Unavailable):
    """The device has not enough memory for a run. Fields: device, found."""

    template = message(
        "{device} does not have enough memory for this run ({found} positions at once). Shorten the input or use a smaller beam."
    )


class NoMemoryLeft(OutOfMemory):
    """The device ran out of memory at an unknown place."""

    template = message("The device does not have enough memory for this run. Shorten the input or use a smaller beam.")


class RunFailed(Unavailable):
    """A run ended inside a library. Fields: error."""

    template = message(
        "This run failed inside a library that it uses: {error}. The engine keeps running. Try another text or "
        "another model, and report it if it happens again."
    )


class NoRoom(Unavailable):
    """The device has not enough memory for a network. Fields: model."""

    template = message(
        "There is not enough memory for the weights of {model}. Choose a smaller model, or move the engine to another device "
        "(HEADLIGHT_DEVICE)."
    )


class FetchFailed(Unavailable):
    """A model that could not be downloaded. Fields: model, reason."""

    template = message("The model “{model}” was not downloaded: {reason}.")


class EngineAway(Unavailable):
    """The engine server does not answer. Fields: host, seconds."""

    template = message("The engine at {host} has not answered for {seconds} s. Retrying every few seconds.")


class EngineStopped(EngineAway):
    """The engine of this process is being closed."""

    template = message("The engine of this program is being stopped. Start Headlight again.")


class EngineMismatch(Unavailable):
    """The server speaks another version of the protocol. Fields: host, found, expected."""

    template = message(
        "The engine at {host} speaks version {found} of the protocol, but this page expects {expected}. Reload the page, or "
        "update both sides to the same version."
    )


class NotAnEngine(EngineMismatch):
    """What answers is no engine server: its answer names no version. Fields: host."""

    template = message(
        "What answers at {host} is not an engine of Headlight: its answer names no version of the protocol. Check the address in "
        "HEADLIGHT_ENGINE."
    )


class WeightsChanged(EngineMismatch):
    """A model's weights have changed between two runs. Fields: host, model, found, expected."""

    template = message(
        "The weights of {model} on the engine at {host} have changed: they are {found} now and were {expected} before. Reload "
        "the page."
    )


class Refused(Unavailable):
    """The server refuses the request."""


class WrongToken(Refused):
    """No token, or another one."""

    template = message(
        "This engine is protected, and HEADLIGHT_TOKEN is missing or wrong here. Set it to the value on the engine’s host."
    )


class NoTokenSet(Refused):
    """A call from another machine to a host without a token."""

    template = message(
        "HEADLIGHT_TOKEN is not set on the engine’s host, so only programs on that machine may call it. Set it there and here."
    )


class TooFast(Refused):
    """Too many requests."""

    template = message("Too many requests. Wait a moment.")


class WorkedEnough(TooFast):
    """The caller's last questions took long. Fields: seconds."""

    singular, template = messages(
        "The questions before this one took long to compute. Ask it again in {seconds:,} second.",
        "The questions before this one took long to compute. Ask it again in {seconds:,} seconds.",
    )
    counted = "seconds"


class TooCostly(Refused):
    """A question that takes too long for this server. Fields: found, allowed, instead. The first two are runs of a short sentence;
    the third is what to ask instead."""

    template = message(
        "This question takes about as long as {found:,} runs of a short sentence, and this server accepts at most {allowed:,}: "
        "{instead}."
    )


class TooLarge(Refused):
    """A body that is too long. Fields: found, allowed, in MB. What was found is rounded up, so it is never the limit."""

    template = message("The file or request is {found:,.1f} MB, and this server accepts at most {allowed:,.0f} MB.")


class TooLong(Refused):
    """An input with too many tokens for this server. Fields: found, allowed. Its strip, or padding, may be known."""

    template = message("The input has {found:,} tokens, and this server accepts at most {allowed:,}. Shorten it.")
    of_strip: ClassVar[Mapping[str, str]] = {
        "source": message("The source has {found:,} tokens, and this server accepts at most {allowed:,}. Shorten it."),
        "target": message("The target has {found:,} tokens, and this server accepts at most {allowed:,}. Shorten it."),
        "padding": message(
            "With its padding the source has {found:,} tokens, and this server accepts at most {allowed:,}. Pad less."
        ),
    }


class TooMuchToWrite(Refused):
    """A decoding that could write too much. Fields: found, allowed, of all hypotheses together."""

    template = message(
        "This decoding could write {found:,} tokens in all its hypotheses, and this server accepts at most {allowed:,}. Ask for "
        "fewer new tokens or a smaller beam."
    )


class UnknownHost(Refused):
    """A request under a name that this server does not answer to. Fields: found."""

    template = message(
        "This server does not answer to the name “{found}”. Use localhost on its own machine, or an IP address that it listens on, "
        "or add the name to the setting HEADLIGHT_HOSTS."
    )


class NotForPages(Refused):
    """A request of a page in a browser, which has an Origin."""

    template = message("This server answers only programs, and this request came from a page in a browser (it has an Origin).")


class NoUploads(Refused):
    """A file for a host that takes none."""

    template = message("This server accepts no files.")


class OtherMachine(Refused):
    """A path for an engine on another machine."""

    template = message(
        "The engine runs on another machine and cannot read this path. Send the file, or start Headlight on that machine."
    )
