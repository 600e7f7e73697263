"""The texts of a survey: a file, what is bundled for a model, pasted lines, or random tokens that repeat.

Files are text in UTF-8: one text a line; source, target and maybe the links of their words separated by tabs; `.csv` with a header
that names `source` and maybe `target` and `links`; `.conllu` (the words of each sentence). Lines without any text are left out and
counted.
"""

import csv
import gzip
import random
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any

from model.errors import BadTexts, CannotSurvey, counted, phrase
from model.features.survey.questions import Text

FOLDER = Path(__file__).parent / "corpora"
"""The bundled texts, one file a corpus; LICENSES.md there says whose they are."""

MOST_TEXTS = 100_000
"""Most texts of one survey."""

MOST_BYTES = 64 * 2**20

OF_MODELS = {
    "multi30k-de-en": "multi30k.tsv.gz",
    "multi30k-de-en-film": "multi30k.tsv.gz",
    "tatoeba-en-zh": "tatoeba.tsv.gz",
    "wikitext2-lm": "wikitext.txt.gz",
    "reverse-digits": "digits.tsv.gz",
    "induction": "repetition.txt.gz",
}
"""The bundled texts of each bundled model: a part of its corpus that its training did not see."""


@dataclass(frozen=True)
class Texts:
    """What a survey reads.

    Attributes:
        name: where the texts come from.
        items: the texts.
        empty: number of lines that held none.
    """

    name: str
    items: tuple[Text, ...]
    empty: int = 0

    @property
    def content(self) -> str:
        """SHA-256 of the texts: what tells a survey that it goes on with the same ones."""
        return sha256(repr(self.items).encode("utf-8", "surrogatepass")).hexdigest()

    def first(self, count: int) -> "Texts":
        """The first ones alone."""
        return replace(self, items=self.items[:count])


def bundled(model: str) -> Texts:
    """The bundled texts for a model: of its own corpus, or of English captions for every other.

    Args:
        model: its name, maybe with the step of a snapshot.
    """
    name = OF_MODELS.get(model.partition("@")[0], "")
    lines = gzip.decompress((FOLDER / (name or "multi30k.tsv.gz")).read_bytes()).decode("utf-8")
    texts = read(lines, name or "multi30k.tsv.gz")
    if name:
        return texts
    # The pairs are German and English; every other model gets the English half as single texts.
    return Texts("multi30k (en)", tuple(Text(str(text.target)) for text in texts.items), texts.empty)


def again(model: str, count: int, content: str, spec: Mapping[str, Any]) -> Texts | None:
    """The texts of a survey that can be had without their file: the bundled ones, or random ones. None: it read others.

    Args:
        model: its name.
        count: how many texts the survey reads.
        content: of these.
        spec: of the model, as JSON values.
    """
    if (texts := bundled(model).first(count)).content == content:
        return texts
    try:
        texts = repeated_for(count, spec)
    except CannotSurvey:  # a network without a vocabulary has no random texts
        return None
    return texts if texts.content == content else None


def read_file(path: Path) -> Texts:
    """The texts of a file.

    Raises:
        BadTexts: it cannot be read, is too large, or is none of the forms above.
    """
    try:
        with path.open("rb") as file:
            return from_bytes(file.read(MOST_BYTES + 1), path.name)
    except OSError as error:
        raise BadTexts(file=path.name, reason=error.strerror or "OSError") from error


def from_bytes(data: bytes, name: str) -> Texts:
    """The texts in the bytes of a file of this name.

    Raises:
        BadTexts: as for `read_file`.
    """
    if len(data) > MOST_BYTES:
        raise BadTexts(file=name, reason=phrase("it is larger than {most} MB", most=MOST_BYTES // 2**20))
    try:
        return read(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise BadTexts(file=name, reason=phrase("line {line:,} is not UTF-8 text: save the file as UTF-8", line=line)) from error


def read(content: str, name: str) -> Texts:
    """The texts in the content of a file of this name.

    Raises:
        BadTexts: as for `read_file`.
    """
    ending = name.removesuffix(".gz").rpartition(".")[2].lower()
    # The ending decides, and not the content: a text in lines may look like a table.
    rows = {"csv": _csv, "conllu": _conllu}.get(ending, _lines)(content, name)
    items: list[Text] = []
    empty = 0
    for line, text in rows:
        if not str(text.source).strip():
            empty += 1
            continue
        if len(items) == MOST_TEXTS:
            raise BadTexts(file=name, reason=phrase("it has more than {most:,} texts", most=MOST_TEXTS))
        try:
            text.gold  # noqa: B018  # read for its error
        except ValueError as error:
            reason = phrase(
                "line {line:,}: “{link}” is not a link between two words such as 0-0 or 0p1", line=line, link=str(error)
            )
            raise BadTexts(file=name, reason=reason) from error
        items.append(text)
    if not items:
        raise BadTexts(file=name, reason=phrase("it holds no text"))
    return Texts(name, tuple(items), empty)


def _text(source: str, target: str | None = None, links: str | None = None) -> Text:
    """One text of a file."""
    return Text(source.strip(), target.strip() if target and target.strip() else None, (links or "").strip())


def _uneven(name: str, line: int, cells: int, columns: int) -> BadTexts:
    """What a line is refused with that has another number of columns."""
    reason = counted(
        "line {line:,} has {count} column, not {columns}",
        "line {line:,} has {count} columns, not {columns}",
        cells,
        line=line,
        columns=columns,
    )
    return BadTexts(file=name, reason=reason)


def _lines(content: str, name: str) -> Iterator[tuple[int, Text]]:
    """One text a line, or source, target and links with tabs between; all lines have the same number of columns."""
    columns = 0
    for number, line in enumerate(content.removesuffix("\n").split("\n"), start=1):
        cells = line.removesuffix("\r").split("\t")
        if line.strip():
            columns = columns or len(cells)
            if len(cells) != columns or columns > 3:
                raise _uneven(name, number, len(cells), min(columns, 3))
        yield number, _text(*cells[:3])


def _csv(content: str, name: str) -> Iterator[tuple[int, Text]]:
    """A table whose header names `source` and maybe `target` and `links`; all lines have the same number of columns."""
    # Strict: without it a quote that never ends would silently take the rest of the file into one cell.
    table = csv.reader(StringIO(content), strict=True)
    try:
        names = next(table, [])
        if "source" not in names:
            raise BadTexts(file=name, reason=phrase("its first line has no column “source”"))
        for cells in table:
            if any(map(str.strip, cells)) and len(cells) != len(names):
                raise _uneven(name, table.line_num, len(cells), len(names))
            row = dict(zip(names, cells, strict=False))
            yield table.line_num, _text(row.get("source", ""), row.get("target"), row.get("links"))
    except csv.Error as error:
        reason = phrase("line {line:,} is not a line of a CSV table ({detail})", line=table.line_num, detail=str(error))
        raise BadTexts(file=name, reason=reason) from error


def _conllu(content: str, name: str) -> Iterator[tuple[int, Text]]:
    """The words of each sentence with spaces between, and its parse. A sentence with a space inside of a word has no parse."""
    words, tree = list[str](), list[str]()
    for number, line in enumerate([*content.split("\n"), ""], start=1):
        line = line.removesuffix("\r")
        if not line:
            if words:
                yield number, Text(" ".join(words), tree=_tree(words, tree, name, number))
            words, tree = [], []
        elif not line.startswith("#"):
            cells = line.split("\t")
            if len(cells) != 10:
                raise _uneven(name, number, len(cells), 10)
            if cells[0].isdecimal():  # others are parts of words, and words that are not written
                if cells[0] != str(len(words) + 1):
                    reason = phrase(
                        "line {line:,}: the words of a sentence are not counted from 1: {found}", line=number, found=cells[0]
                    )
                    raise BadTexts(file=name, reason=reason)
                if not (cells[6] == "_" or cells[6].isdecimal()):
                    reason = phrase("line {line:,}: “{head}” is not the number of a word", line=number, head=cells[6])
                    raise BadTexts(file=name, reason=reason)
                words.append(cells[1])
                tree.append(f"{cells[3] or '_'}:{cells[6] if cells[6] != '_' else 0}:{cells[7] or '_'}")


def _tree(words: Sequence[str], tree: Sequence[str], name: str, line: int) -> str:
    """The parse of a sentence that ends before a line.

    Raises:
        BadTexts: a word depends on one that is not there.
    """
    for entry in tree:
        if int(head := entry.split(":", 2)[1]) > len(words):
            reason = phrase(
                "the sentence before line {line:,} has {count} words, and one depends on word {head}",
                line=line,
                count=len(words),
                head=head,
            )
            raise BadTexts(file=name, reason=reason)
    return (
        ""
        if any(len(word.split()) != 1 for word in words) or all(field == "_:0:_" for field in tree)
        else " ".join("".join(field.split()) for field in tree)
    )


def repeated_for(count: int, spec: Mapping[str, Any]) -> Texts:
    """So many random texts that repeat, for a network.

    Args:
        spec: of the network, as JSON values.

    Raises:
        CannotSurvey: it reads no ids.
    """
    return Texts(f"repeated:{count}", tuple(repetition(number, spec) for number in range(count)))


def repetition(number: int, spec: Mapping[str, Any]) -> Text:
    """Random ids in a block that comes twice, without any special token: what comes after the first block can be looked up.

    A decoder beside an encoder is fed such a text, too, of its own vocabulary.

    Args:
        number: the seed.
        spec: of the network, as JSON values.

    Raises:
        CannotSurvey: it reads no ids.

    Source: Olsson et al. 2022, "In-context Learning and Induction Heads", section 4.
    """
    # The number of the text is the seed, so a text is the same in each share of a survey and after a resume.
    draw, stacks = random.Random(number), [stack for stack in (spec.get("encoder"), spec.get("decoder")) if stack]
    if not stacks or not stacks[0].get("vocab"):
        raise CannotSurvey(reason=phrase("this network reads no tokens"))
    special = [spec.get(name) for name in ("pad_id", "start_id", "end_id", "unk_id")]
    left_out = {id_ for id_ in (*special, *spec.get("suppressed", ())) if id_ is not None}
    blocks = [_block(draw, stack, left_out) for stack in stacks if stack.get("vocab")]
    return Text(blocks[0] * 2, blocks[1] * 2 if len(blocks) > 1 else None)


LONGEST_BLOCK = 25
"""Most tokens of a block that comes twice."""


def _block(draw: random.Random, stack: Mapping[str, Any], left_out: Set[int]) -> tuple[int, ...]:
    """Random ids of the vocabulary of a stack, as many as fit into its positions twice."""
    ids = [id_ for id_ in range(stack["vocab"]) if id_ not in left_out]
    return tuple(draw.choices(ids, k=max(min(LONGEST_BLOCK, stack["max_positions"] // 2), 1)))
