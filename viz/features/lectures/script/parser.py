"""Reads a lecture from Markdown. Nothing in the file is executed: raw HTML is shown as text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

from model.errors import BadLecture
from model.requests.sent_text import split_address
from viz.claims.line_parser import Unreadable
from viz.features.lectures.script import claims
from viz.features.lectures.script.lecture import Claim, Lecture, Point, Problem, Question, Step
from viz.i18n.translate import _
from viz.url import links
from viz.url.view_state import ViewState
from viz.views.page_panels import pages_of_steps

LARGEST = 2**20
"""Most bytes of a file."""

MOST_STEPS = 500
"""Most steps of a lecture."""

FRONT_MATTER = ("title", "language", "minutes", "models")
INSTRUCTIONS = ("view", "point", "note", "question", "answer", "option", "expect", "needs", "unless")
"""Words that begin an instruction at the start of a line; docs/lectures.md defines each."""

_INSTRUCTION = re.compile(r"([a-z]+): +(\S.*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


@dataclass
class _Draft:
    """The lines of one step, sorted.

    Attributes:
        line: its first line.
        words: lines of Markdown.
        instructions: the lines of each instruction with their numbers.
        heading: its own heading.
        chapter: the chapter that it begins; empty: none.
    """

    line: int
    words: list[str] = field(default_factory=list)
    instructions: list[tuple[int, str, str]] = field(default_factory=list)
    heading: str = ""
    chapter: str = ""

    def all(self, name: str) -> list[tuple[int, str]]:
        """Line and text of the instructions called `name`."""
        return [(line, text) for line, key, text in self.instructions if key == name]


def decode(data: bytes, name: str) -> str:
    """The text of a file.

    Raises:
        BadLecture: it is too large, or not UTF-8.
    """
    if len(data) > LARGEST:
        raise BadLecture(lecture=name, line=1, reason=_("the file is larger than 1 MB"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadLecture(lecture=name, line=line, reason=_("the file is not UTF-8 text")) from error


def read(text: str, name: str) -> Lecture:
    """The lecture in a text. What cannot be read in a step is named in `problems` and left out.

    Args:
        text: the file's content.
        name: name of the file without its ending.

    Raises:
        BadLecture: there is no front matter, it lacks something, or there is no step or too many.
    """
    lines = text.replace("\r\n", "\n").replace("\x00", "�").split("\n")
    front, first = _front_matter(lines, name)
    problems = list[Problem]()
    drafts = [d for d in _drafts(lines, first, problems) if d.words or d.instructions or d.heading or d.chapter]
    if not drafts:
        raise BadLecture(lecture=name, line=first + 1, reason=_("the file has no steps"))
    if len(drafts) > MOST_STEPS:
        fields = {"count": len(drafts), "most": MOST_STEPS}
        raise BadLecture(
            lecture=name, line=drafts[MOST_STEPS].line, reason=_("too many steps: {count}; the limit is {most}", **fields)
        )
    steps, chapter = list[Step](), ""
    for number, draft in enumerate(drafts):
        chapter = draft.chapter or chapter
        steps.append(_step(number, chapter, draft, front["models"], problems))
    ordered = tuple(sorted(problems, key=lambda problem: problem.line))
    return Lecture(name, front["title"][0], front["language"][0], int(front["minutes"][0]), front["models"], tuple(steps), ordered)


def _front_matter(lines: Sequence[str], name: str) -> tuple[Mapping[str, tuple[str, ...]], int]:
    """The values of the front matter by name, and the index of the first line after it."""

    def refuse(line: int, reason: str) -> BadLecture:
        return BadLecture(lecture=name, line=line, reason=reason)

    ends = [number for number, line in enumerate(lines[:50]) if line.rstrip() == "---"]
    if len(ends) < 2 or ends[0] != 0:
        raise refuse(1, _("the first line must be ---, followed by title, language, minutes and models, and by another ---"))
    entries: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines[1 : ends[1]], start=2):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or key not in FRONT_MATTER or key in entries:
            fields = {"line": line.strip()[:40], "there": ", ".join(FRONT_MATTER)}
            raise refuse(
                number, _("“{line}” is not accepted here. Write each of these lines once, as NAME: VALUE: {there}", **fields)
            )
        entries[key] = tuple(part.strip() for part in value.split(",") if part.strip()) if key == "models" else (value,)
    if missing := [key for key in FRONT_MATTER if not any(entries.get(key, ()))]:
        raise refuse(ends[1] + 1, _("missing at the top of the file: {missing}", missing=", ".join(missing)))
    minutes = entries["minutes"][0]
    if not (minutes.isascii() and minutes.isdigit() and 1 <= len(minutes) <= 4):
        raise refuse(1, _("minutes must be a whole number, not {found}", found=minutes[:40]))
    return entries, ends[1] + 1


def _drafts(lines: Sequence[str], first: int, problems: list[Problem]) -> Iterator[_Draft]:
    """The steps from the index `first` on. A line `---` outside of code separates them."""
    draft, fence, last = _Draft(first + 1), "", False
    for number, line in enumerate(lines[first:], start=first + 1):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence and line.rstrip() == "---":
            yield draft
            draft, last = _Draft(number + 1), False
            continue
        if fence or mark:
            draft.words.append(line)
            last = False
        else:
            last = _take(draft, number, line, last, problems)
    yield draft


def _take(draft: _Draft, number: int, line: str, last: bool, problems: list[Problem]) -> bool:
    """Puts one line outside of code into a draft.

    Args:
        last: whether the line before belongs to an instruction, which an indented line continues.

    Returns:
        Whether this line belongs to an instruction.
    """
    instruction = _INSTRUCTION.fullmatch(line.rstrip())
    if last and line.startswith("  ") and line.strip():
        where, name, text = draft.instructions[-1]
        draft.instructions[-1] = where, name, f"{text} {line.strip()}"
        return True
    if instruction and instruction[1] in INSTRUCTIONS:
        draft.instructions.append((number, instruction[1], instruction[2]))
        return True
    if instruction:
        fields = {"word": instruction[1], "there": ", ".join(INSTRUCTIONS)}
        problems.append(Problem(number, _("“{word}:” is not an instruction. Instructions: {there}", **fields)))
    elif line.startswith("# ") and not draft.chapter:
        draft.chapter = line[2:].strip()
    elif line.startswith("## ") and not draft.heading:
        draft.heading = line[3:].strip()
    elif line.strip() or draft.words:
        draft.words.append(line)
    return False


def harmless(words: str) -> str:
    """Markdown whose raw HTML is text: `<` before a tag is escaped outside of code. Takes linear time, whatever is typed."""
    parts = re.split("(`+)", words)  # text, backquotes, text, backquotes, …
    places: dict[str, list[int]] = {}
    for number in range(len(parts) - 2, 0, -2):
        places.setdefault(parts[number], []).append(number)
    end = 0
    for number, part in enumerate(parts):
        if number % 2:
            later = places[part]
            later.pop()
            if number > end and later:
                end = later[-1]  # the next backquotes of the same length end the code
        elif number >= end:
            parts[number] = _TAG.sub("\\\\<", part)
    return "".join(parts)


def _words(lines: Sequence[str]) -> str:
    """The lines of Markdown as one text; code blocks stay as they are."""
    kept, block = list[str](), list[str]()
    fence = ""
    for line in lines:
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            kept += [harmless("\n".join(block)), line] if block and not fence else [*block, line]
            block, fence = [], "" if fence else mark[1]
        else:
            block.append(line)
    kept += block if fence else [harmless("\n".join(block))]
    return "\n".join(kept).strip()


def _step(number: int, chapter: str, draft: _Draft, models: Sequence[str], problems: list[Problem]) -> Step:
    page, view, link = _view(draft, models, problems)
    points, expects = list[Point](), list[Claim]()
    for line, text in draft.all("point"):
        try:
            points.append(claims.point(text, line))
        except Unreadable as error:
            problems.append(Problem(line, str(error)))
    for line, text in draft.all("expect"):
        try:
            expects.append(claims.claim(text, line))
        except Unreadable as error:
            problems.append(Problem(line, str(error)))
    return Step(
        number=number,
        chapter=harmless(chapter),
        title=harmless(draft.heading),
        words=_words(draft.words),
        page=page,
        view=view,
        link=link,
        points=tuple(points),
        notes=harmless("\n\n".join(text for _line, text in draft.all("note"))),
        question=_question(draft, problems),
        expects=tuple(expects),
        line=draft.line,
        needs=tuple(text for _line, text in draft.all("needs")),
        unless=tuple(text for _line, text in draft.all("unless")),
    )


def _question(draft: _Draft, problems: list[Problem]) -> Question | None:
    asked, answers, options = (draft.all(name) for name in ("question", "answer", "option"))
    if not asked and not answers and not options:
        return None
    line = (asked or answers or options)[0][0]
    if len(asked) != 1 or len(answers) != 1:
        problems.append(Problem(line, _("a question needs one question: line and one answer: line")))
        return None
    try:
        return claims.question(harmless(asked[0][1]), answers[0][1], tuple(text for _line, text in options), line)
    except Unreadable as error:
        problems.append(Problem(answers[0][0], str(error)))
        return None


def _view(draft: _Draft, models: Sequence[str], problems: list[Problem]) -> tuple[str, ViewState, str]:
    """Page, view and text of a step's link."""
    views = draft.all("view")
    if len(views) != 1:
        line = views[1][0] if views else draft.line
        problems.append(Problem(line, _("a step needs exactly one view: line; found: {count}", count=len(views))))
    if not views:
        return "", ViewState(model=models[0]), ""
    line, link = views[0]
    page, view, sentences = parse_link(link)
    problems += [Problem(line, sentence) for sentence in sentences]
    return page, replace(view, model=view.model or models[0]), link


def parse_link(link: str) -> tuple[str, ViewState, list[str]]:
    """The page and the view of a link, with or without the address of the app, and a sentence for each problem."""
    if (url := split_address(link.strip())) is None:
        return "", ViewState(), [_("“{link}” is not a link", link=link[:80])]
    pages = pages_of_steps()
    page = url.path.strip("/") or next(iter(pages))  # the app opens on Explore
    if page not in pages or url.scheme not in ("", "http", "https"):
        fields = {"link": link[:80], "there": ", ".join(f"/{name}" for name in pages)}
        return "", ViewState(), [_("“{link}” is not a page of the app. Pages: {there}", **fields)]
    query: dict[str, str] = {}
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        query[name] = f"{query[name]}; {value}" if name == "edit" and name in query else value
    view, problems = links.read(query)
    return page, view, problems
