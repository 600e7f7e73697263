"""One class: the step that is shown, the pointer, the polls, and the events that followers get.

Two feeds: students get what is shown now, lecturers also the notes and the counts of an open poll. Used on the event loop only.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from viz.features.lectures.classroom.deck import Deck, Slide
from viz.features.lectures.classroom.event_feed import EventFeed
from viz.features.lectures.classroom.join_codes import hashed, is_key
from viz.features.lectures.classroom.poll import Outcome, Phase, Poll
from viz.url.view_state import reported

LONGEST_VIEW = 64
"""Most characters of the name of a view that a lecturer shows off the path, and of a site."""

LARGEST_INDEX = 1_000_000
"""Numbers of a steering command must be smaller: steps, places in a list, ids."""

COUNT_SECONDS = 0.25
"""Time in which answers are collected before their counts are sent."""


class InvalidCommand(ValueError):
    """A lecturer's page sent something that a class cannot do; nothing changed."""


@dataclass
class Classroom:
    """The state of a class.

    Attributes:
        code: what students type.
        key_hash: hash of the lecturer's key.
        deck: the lecture. If it becomes shorter, the class goes on at its last step.
        opened: time at which the class was opened, in seconds since 1970.
        step: the present step, counted from 0.
        polls: the polls of questions that were asked, by step.
        devices: hashes of the devices that joined.
        orders: how many orders of lecturers were done; the state of the class says it, and a page does not go back behind its own.
        saved: called after each change that outlives a restart.
    """

    code: str
    key_hash: str
    deck: Deck
    opened: float
    step: int = 0
    polls: dict[int, Poll] = field(default_factory=dict)
    devices: set[str] = field(default_factory=set)
    orders: int = 0
    saved: Callable[["Classroom"], None] = lambda room: None
    students: EventFeed = field(init=False)
    lecturers: EventFeed = field(default_factory=EventFeed)

    def __post_init__(self) -> None:
        """Prepares the present step and tells it to those who follow."""
        self.students = EventFeed(lambda: self.lecturers.send("followers", {"followers": self.students.followers}))
        self._black, self._away, self._choice = False, "", dict[str, Any]()
        self._counting: asyncio.TimerHandle | None = None
        self.go(min(self.step, len(self.deck.slides) - 1))

    def admits(self, key: str) -> bool:
        """Whether `key` is the lecturer's."""
        return is_key(key, self.key_hash)

    @property
    def slide(self) -> Slide:
        """The present step."""
        return self.deck.slides[self.step]

    def go(self, step: int) -> None:
        """Shows a step and opens its poll, if it asks something that was not asked before.

        Raises:
            InvalidCommand: there is no such step.
        """
        if not 0 <= step < len(self.deck.slides):
            raise InvalidCommand(f"step {step}")
        self.step, self._away, self._choice = step, "", {}
        self.deck.prepare(step)
        self.students.send("pointer", {})
        self.refresh()
        self.saved(self)

    def apply_command(self, order: Mapping[str, Any]) -> None:
        """Does what the lecturer's page orders: any of `step`, `black`, `pointer`, `choice`, `view` and `phase`.

        Raises:
            InvalidCommand: a value is not understood. The values before it were taken.
        """
        for name, value in order.items():
            if name == "step" and type(value) is int:
                self.go(value)
            elif name == "black" and type(value) is bool:
                self._black = value
            elif name == "pointer" and (pointed := _pointed(value)) is not None:
                self.students.send("pointer", pointed)
            elif name == "choice" and isinstance(value, Mapping):
                self._choice = _choice(value)
            elif name == "view" and isinstance(value, str) and len(value) <= LONGEST_VIEW:
                self._away, self._choice = value, {}
            elif name == "phase" and value in ("open", "closed", "revealed"):
                self._set_phase(value)
            else:
                raise InvalidCommand(name[:40])
        if order.keys() - {"pointer"}:
            self.orders += 1
            self.refresh()

    def answer(self, device: str, step: object, value: object) -> Outcome:
        """Counts an answer of a device to the question of a step.

        Args:
            device: the device's name, which only its hash is kept of.
            step: the step of the question.
            value: index of an option, or a number.
        """
        poll = self.polls.get(step) if type(step) is int else None
        if poll is None:
            return "malformed"
        outcome = "late" if step != self.step else poll.put(hashed(device), value)
        if outcome == "counted":
            self._counting = self._counting or asyncio.get_running_loop().call_later(COUNT_SECONDS, self._tell_counts)
            self.saved(self)
        return outcome

    def counted(self, device: str, step: object) -> float | None:
        """The answer of a device that counts for the question of a step; None: there is none."""
        poll = self.polls.get(step) if type(step) is int else None
        return poll.answers.get(hashed(device)) if poll is not None else None

    def refresh(self) -> None:
        """Tells the present state to all who follow. Called on the event loop when a view was prepared, too."""
        self._ask()
        shown = self._shown()
        self.students.send("step", {"step": self.step, "black": True} if self._black else shown)
        self.lecturers.send("step", shown | self._for_lecturers())
        self._tell_counts()

    @property
    def _poll(self) -> Poll | None:
        """The poll of the present step; None: it asks nothing, or its run cannot answer."""
        return self.polls.get(self.step) if self.slide.question is not None else None

    def _ask(self) -> None:
        """Opens the poll of the present step if it asks something. The options may be known only later, from its run."""
        question, poll = self.slide.question, self.polls.get(self.step)
        if question is not None and poll is None:
            self.polls[self.step] = Poll(question)
        elif question is not None and poll is not None and not (poll.answers and poll.question.options):
            poll.offer(question)

    def _set_phase(self, phase: Phase) -> None:
        if (poll := self._poll) is None:
            raise InvalidCommand("phase")
        poll.phase = phase
        self.saved(self)

    def _tell_counts(self) -> None:
        self._counting = None
        poll = self._poll
        told = {"step": self.step, **poll.counts()} if poll is not None else {}
        self.lecturers.send("counts", told)
        public = poll is not None and poll.phase != "open"
        self.students.send("counts", told if public else {})

    def _shown(self) -> dict[str, Any]:
        """The state that students see."""
        slide, poll = self.slide, self._poll
        covered = poll is not None and poll.phase != "revealed"
        found: dict[str, Any] = {
            "step": self.step,
            "steps": len(self.deck.slides),
            "title": slide.title,
            "chapter": slide.chapter,
            "words": "" if covered else slide.words,
            "view": self._away or (None if covered else self.deck.view(self.step)),
            "away": bool(self._away),
            "choice": self._choice,
            "points": [] if covered else list(slide.points),
            "ahead": self._ahead(poll),
        }
        if poll is not None:
            found["question"] = self._asked(poll)
        return found

    def _asked(self, poll: Poll) -> dict[str, Any]:
        found = asdict(poll.question) | {"phase": poll.phase}
        if poll.phase == "revealed" and (answer := self.deck.answer(self.step)) is not None:
            found["answer"] = asdict(answer)
        return found

    def _ahead(self, poll: Poll | None) -> list[str]:
        """Views that followers may fetch before they are shown: the present one once its poll is closed, and that of the next step
        unless it answers a question that is not closed yet. None while a poll is open: the next view may answer it, too.
        """
        if poll is not None and poll.phase == "open":
            return []
        following = self.step + 1
        names = [self.deck.view(self.step)] if poll is not None and poll.phase == "closed" else []
        if following < len(self.deck.slides):
            asks = self.deck.slides[following].question is not None
            later = self.polls.get(following)
            if not asks or (later is not None and later.phase != "open"):
                names.append(self.deck.view(following))
        return [name for name in names if name]

    def _for_lecturers(self) -> dict[str, Any]:
        """What the lecturers know before the class does, too: the answer of an open question and the words that it hides."""
        following, answer = self.step + 1, self.deck.answer(self.step)
        return {
            "black": self._black,
            "orders": self.orders,
            "notes": self.slide.notes,
            "told": self.slide.words,
            "known": asdict(answer) if answer is not None else None,
            "next": self.deck.slides[following].title if following < len(self.deck.slides) else "",
            "problem": self.deck.problem(self.step),
            "prepared": self.deck.view(self.step),
        }


def _pointed(value: object) -> dict[str, Any] | None:
    """The lecturer's pointer: a row and a column of two strips; {}: nothing; None: not a pointer."""
    if not isinstance(value, Mapping):
        return None
    strips, places = (value.get("queryStrip"), value.get("keyStrip")), (value.get("query"), value.get("key"))
    if not all(one is None or (isinstance(one, str) and len(one) <= LONGEST_VIEW) for one in strips):
        return None
    if not all(one is None or (type(one) is int and 0 <= one < LARGEST_INDEX) for one in places):
        return None
    found = {"queryStrip": strips[0], "query": places[0], "keyStrip": strips[1], "key": places[1]}
    return {name: one for name, one in found.items() if one is not None}


def _choice(value: Mapping[str, Any]) -> dict[str, Any]:
    """The selection in the view: a site, a head, a row, a step; everything else is dropped."""
    numbers = {name: value.get(name) for name in reported()}
    found: dict[str, Any] = {name: one for name, one in numbers.items() if type(one) is int and -1 <= one < LARGEST_INDEX}
    site = value.get("site")
    return found | ({"site": site} if isinstance(site, str) and len(site) <= LONGEST_VIEW else {})
