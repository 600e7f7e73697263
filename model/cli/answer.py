"""How a command prints an answer: as one JSON object, or the same values as lines and tables."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

STRONGEST = 12
"""Summands that a text lists; the others are summed up."""


def show(values: Any, as_json: bool, text: Mapping[str, Any] | None = None) -> None:
    """Prints an answer.

    Args:
        values: the answer as JSON values, which are printed as they are.
        as_json: whether they are; otherwise people read it.
        text: what people read instead of some of the values, or beside them, by name; None hides a value.
    """
    click.echo(json.dumps(values, ensure_ascii=False) if as_json else "\n".join(lines({**values, **(text or {})})))


def lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Values as lines of text: first those that are one number or text, then a table for each list of objects.

    Arrays of numbers are left out, because nobody reads them; so is what is empty or not there.
    """
    flat = dict(_flattened(values))
    tables = {name: value for name, value in flat.items() if _is_table(value)}
    single = {name: value for name, value in flat.items() if name not in tables}
    width = max(map(len, single), default=0)
    yield from (f"{name:{width}}  {_text(value, 7)}" for name, value in single.items())
    for name, rows in tables.items():
        yield f"{name}:"
        yield from table(rows)


def _flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values that are printed, those inside of other objects by a name with dots."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        elif value not in (None, "", [], ()) and (not isinstance(value, list | tuple) or isinstance(value[0], str | Mapping)):
            yield prefix + name, value


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and isinstance(value[0], Mapping)


def table(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Rows of a table below the names of their columns, numbers to the right; lists are left out.

    Args:
        rows: the values of each by column; one that is not there is a dash.
    """
    rows = list(rows)
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if not _is_list(name, rows)]
    cells = {name: [_text(row.get(name), 4) for row in rows] for name in columns}
    numeric = {name: all(isinstance(row.get(name), int | float | None) for row in rows) for name in columns}
    widths = {name: max(map(len, [name, *cells[name]])) for name in columns}
    for line in ({name: name for name in columns}, *({name: cells[name][at] for name in columns} for at in range(len(rows)))):
        yield "  ".join(f"{line[name]:{'>' if numeric[name] else '<'}{widths[name]}}" for name in columns).rstrip()


def _is_list(name: str, rows: list[Mapping[str, Any]]) -> bool:
    return any(isinstance(row.get(name), list | tuple) for row in rows)


def _text(value: Any, digits: int) -> str:
    """One value: numbers with these digits, an object by its text or its values."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1e}" if 0 < abs(value) < 10**-digits else f"{value:z,.{digits}f}"
    if isinstance(value, Mapping):
        return str(value.get("text") or " head ".join(map(str, value.values())))
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def strongest(summands: Iterable[tuple[float | None, str]]) -> list[dict[str, Any]]:
    """The rows of the strongest summands, and one with the sum of all others.

    Args:
        summands: the value and the text of each; one that is None is no summand.
    """
    known = [(value, text) for value, text in summands if value is not None]
    ordered = sorted(known, key=lambda summand: -abs(summand[0]))
    others = [value for value, _text in ordered[STRONGEST:]]
    rows = ordered[:STRONGEST] + ([(sum(others), f"{len(others):,} others")] if others else [])
    return [{"value": value, "part": text} for value, text in rows]
