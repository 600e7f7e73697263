"""The request is valid, but the engine cannot answer now: errors of queues, devices and servers."""

from model.errors.root import HeadlightError


class Unavailable(HeadlightError):
    """The request is valid, but the engine cannot answer now."""


class Busy(Unavailable):
    """Too many requests wait. Fields: ahead."""

    template = "The engine is busy, {ahead} requests are ahead: try again in a few seconds."


class Superseded(Unavailable):
    """A newer request of the same session replaced it. Fields: model."""

    template = "This run of {model} was given up for a newer one of the same visitor: look at that one."


class TookTooLong(Unavailable):
    """No answer before the deadline. Fields: seconds."""

    template = "There was no answer within {seconds} s: try again, or ask for less (a shorter text, fewer tokens to write)."


class OutOfMemory(Unavailable):
    """The device has not enough memory for a run. Fields: device, found."""

    template = "The memory of {device} does not suffice for this run ({found} positions at once): shorten the input or the beam."


class RunFailed(Unavailable):
    """A run ended inside a library. Fields: error."""

    template = (
        "This run ended inside a library that it uses ({error}), and the engine goes on without it: try another text or another "
        "model, and report it if it happens again."
    )


class NoRoom(Unavailable):
    """The device has not enough memory for a network. Fields: device, model."""

    template = (
        "The memory of {device} does not suffice for the weights of {model}: ask for a smaller model, or let the engine compute on "
        "another device (HEADLIGHT_DEVICE)."
    )


class EngineAway(Unavailable):
    """The engine server does not answer. Fields: host, seconds."""

    template = "The engine at {host} does not answer since {seconds} s: it is asked again every few seconds."


class EngineMismatch(Unavailable):
    """The server has another protocol version, or a model's weights have changed. Fields: host, what, found, expected."""

    template = "The engine at {host} has {what} {found}, where {expected} is expected: reload, or update both to one version."


class Refused(Unavailable):
    """The server refuses the request. Fields: what, found, allowed."""

    template = "{what} is {found}, which is not served here: {allowed}."
