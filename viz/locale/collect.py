"""Collects every sentence on screen into headlight.pot, the template of translations: `python -m viz.locale.collect`.

The sentences are the literal first arguments of `_` in `viz`, and the sentences of `model/errors`. Needs Babel.
"""

from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.pofile import write_po

from model import errors

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).parent / "headlight.pot"


def sentences() -> Iterator[tuple[str, str]]:
    """Every sentence with its file."""
    for path in sorted((ROOT / "viz").rglob("*.py")):
        for _line, message, _comments, _context in extract_from_file("python", path, keywords={"_": None}):
            yield str(message), path.relative_to(ROOT).as_posix()
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.HeadlightError) and "template" in vars(kind):
            yield kind.on_screen or kind.template, "model/errors"


def main() -> None:
    """Writes the catalogue without dates and line numbers, so that it changes only with the sentences."""
    catalogue = Catalog()
    for sentence, file in sentences():
        catalogue.add(sentence, locations=[(file, 0)])
    with CATALOGUE.open("wb") as out:
        write_po(out, catalogue, width=120, omit_header=True, sort_by_file=True, include_lineno=False)


if __name__ == "__main__":
    main()
