"""Sentences of the pages of a lecture. JavaScript only fills their {gaps}."""

from viz.i18n.translate import _


def scripts() -> dict[str, str]:
    """Sentences that the scripts use."""
    return {
        "place": _("step {step} of {steps}"),
        "back": _("You are exploring on your own. Back to the lecture"),
        "wentOn": _("The lecture has moved on."),
        "late": _("The answer came too late: the question is closed."),
        "youRight": _("You were right."),
        "youWrong": _("Not this time."),
        "yours": _("Your answer: {answer}"),
        "unanswered": _("You did not answer this question."),
        "counted": _("Your answer has been counted."),
        "closed": _("The question is closed."),
        "answers": _("Answers: {count}"),
        "early": _("Show the answers so far"),
        "followers": _("Devices: {count}"),
        "runSays": _("The run gives {number}."),
        "right": _("right"),
        "number": _("Your number:"),
        "noNumber": _("“{text}” is not a number that can be sent. Write digits, such as {example}."),
        "percent": _("{number}%"),
        "send": _("Send"),
        "noPicture": _("This view could not be loaded. Reload the page."),
        "running": _("Running …"),
        "lost": _("Connection lost. Reconnecting …"),
        "first": _("This is the first step."),
        "last": _("This is the last step."),
        "atHome": _("This is the view of the lecture already."),
        "noneOpen": _("No class is answering a question right now."),
        "largest": _("The text cannot become larger."),
        "smallest": _("The text cannot become smaller."),
        "willHide": _("The text will be hidden when the question is answered."),
        "willShow": _("The text will be shown when the question is answered."),
        "clock": _("{passed} of {minutes} min"),
    }


def making() -> dict[str, str]:
    """Sentences of the page that waits for a download."""
    return {
        "preparing": _("The lecture is being prepared: step {prepared} of {steps}. The download will start automatically."),
        "packing": _("The file is being made. The download will start automatically."),
        "begun": _("The download has started. You can close this page."),
        "failed": _("The download could not be started. Reload this page."),
    }


def page() -> dict[str, str]:
    """Sentences of the pages themselves."""
    return {
        "lost": _("Connection lost. Reconnecting …"),
        "over": _("The class is over."),
        "stage": _("The view of this step"),
        "preparing": _("This view is being prepared."),
        "home": _("Back to the lecture (Home)"),
        "chapters": _("Chapters"),
        "other": _("Another sentence"),
        "class": _("Class"),
        "speaker": _("Speaker"),
        "keys": _("Keyboard"),
        "full": _("Full screen"),
        "backward": _("Back"),
        "forward": _("Next"),
        "following": _("Next step:"),
        "join": _("Join the class"),
        "code": _("Code of the class"),
        "enter": _("Join"),
        "loopback": _(
            "Phones cannot reach this address. Start the app with --server.address=0.0.0.0 and open this page by the network "
            "address of this computer."
        ),
        "several": _("Phones in another network? Choose its address:"),
        "csv": _("Download the counts as CSV"),
        "close": _("Close"),
        "sentence": _("Sentence"),
        "run": _("Run"),
        "making": _("The file is being made. The download will start automatically."),
        "patience": _("A script inside this page draws the lecture; it needs a browser from 2023 or later."),
    }


def listed_keys() -> list[tuple[str, str]]:
    """The keys of the lecturer's page and what they do."""
    return [
        ("PageDown →", _("next: close the question, reveal the answer, next step")),
        ("PageUp ←", _("previous step")),
        ("Home", _("back to the lecture")),
        ("T", _("another sentence in this view")),
        ("C", _("the class: code and QR code")),
        ("A", _("show or hide the answers of the class before the question is closed")),
        ("S", _("the speaker’s window")),
        ("L", _("a pointer that the class sees")),
        ("B", _("black screen")),
        ("W", _("hide or show the text")),
        ("+ −", _("text size")),
        ("F", _("full screen")),
    ]
