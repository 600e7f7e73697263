"""The request is valid, but the engine cannot answer now: errors of queues, devices and servers."""

from model.errors.root import HeadlightError


class Unavailable(HeadlightError):
    """The request is valid, but the engine cannot answer now."""


class Busy(Unavailable):
    """Too many requests wait. Fields: ahead."""

    template = "The engine is busy: {ahead} requests are ahead of yours. Try again in a few seconds."
    singular = "The engine is busy: {ahead} request is ahead of yours. Try again in a few seconds."
    counted = "ahead"


class Superseded(Unavailable):
    """A newer request of the same session replaced it. Fields: model."""

    template = "This run of {model} was canceled because you started a newer one. See the newer result."


class StillOpening(Unavailable):
    """The files of a model take long to open; they are opened meanwhile. Fields: model."""

    template = "{model} is still being opened. Reload the page in a minute."


class TookTooLong(Unavailable):
    """No answer before the deadline. Fields: seconds."""

    template = "No answer within {seconds} s. Try again, or ask for less: a shorter text or fewer new tokens."


class OutOfMemory(Unavailable):
    """The device has not enough memory for a run. Fields: device, found."""

    template = (
        "{device} does not have enough memory for this run ({found} positions at once). Shorten the input or use a smaller beam."
    )


class RunFailed(Unavailable):
    """A run ended inside a library. Fields: error."""

    template = (
        "This run failed inside a library that it uses ({error}); the engine keeps running. Try another text or "
        "another model, and report it if it happens again."
    )


class NoRoom(Unavailable):
    """The device has not enough memory for a network. Fields: device, model."""

    template = (
        "{device} does not have enough memory for the weights of {model}. Choose a smaller model, or move the engine "
        "to another device (HEADLIGHT_DEVICE)."
    )


class EngineAway(Unavailable):
    """The engine server does not answer. Fields: host, seconds."""

    template = "The engine at {host} has not answered for {seconds} s. Retrying every few seconds."


class EngineMismatch(Unavailable):
    """The server has another protocol version, or a model's weights have changed. Fields: host, what, found, expected."""

    template = (
        "The engine at {host} has another version than this page: {what} {found}, but {expected} is expected. Reload the "
        "page, or update both sides to the same version."
    )


class Refused(Unavailable):
    """The server refuses the request. Fields: what, found, allowed."""

    template = "{what} is {found}, which this server does not accept: {allowed}."
