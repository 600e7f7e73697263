"""Reads, for Babel, what a bundled checkpoint says about itself on screen."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, BinaryIO

Message = tuple[int, str, str, list[str]]
"""A line, the name of a function (none here), a text, and comments for translators."""


def extract(
    file: BinaryIO, keywords: Collection[str], comment_tags: Collection[str], options: Mapping[str, Any]
) -> Iterator[Message]:
    """The texts in a spec.json, as an extraction method of Babel."""
    spec = json.load(file)
    texts = (spec["title"], spec["summary"], *spec["languages"].values(), *spec.get("example_labels", ()), *spec.get("notes", ()))
    yield from ((1, "", text, []) for text in texts)
