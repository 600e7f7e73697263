"""What people type for a model of a Hub: `gpt2`, `hub:ORG/NAME@REVISION`, the address of its page. And what the owner allows."""

import os
import re
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args
from urllib.parse import unquote, urlsplit

from model.errors import BadSetting, NotAHubPage

PREFIX = "hub:"
"""Prefix of the names of a Hub's models, where a model is named."""

Mode: TypeAlias = Literal["off", "cache", "ask"]
"""What may be done with names of a Hub: nothing; what the cache holds; a download where somebody asks for it."""

VARIABLE = "HEADLIGHT_HUB"

COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"(?:hub:)?(?P<repo>\w[\w.-]{0,95}(?:/\w[\w.-]{0,95})?)(?:@(?P<revision>\w[\w./-]{0,127}))?", re.ASCII)
_PAGES = ("tree", "blob", "resolve", "commit")


@dataclass(frozen=True)
class HubName:
    """A model of a Hub.

    Attributes:
        repo: ORG/NAME; of old names, NAME alone.
        revision: a branch, a tag or a commit; empty: the main branch.
    """

    repo: str
    revision: str = ""

    def __str__(self) -> str:
        """The name with its prefix, as links and requests have it."""
        return f"{PREFIX}{self.repo}@{self.revision}" if self.revision else f"{PREFIX}{self.repo}"

    @property
    def typed(self) -> str:
        """The name without its prefix, as people type it."""
        return str(self).removeprefix(PREFIX)


def mode() -> Mode:
    """What HEADLIGHT_HUB allows: by default `ask`, and in public mode `off`.

    Raises:
        BadSetting: it has another value.
    """
    asked = os.environ.get(VARIABLE) or ("off" if os.environ.get("HEADLIGHT_PUBLIC") == "1" else "ask")
    if asked not in get_args(Mode):
        raise BadSetting(name=VARIABLE, found=asked[:40], allowed=", ".join(get_args(Mode)))
    return asked  # type: ignore[return-value]  # one of Mode


def parsed(text: str) -> HubName | None:
    """The model that a text can mean: a name, or the address of a page of the Hub; None: it is neither.

    Raises:
        NotAHubPage: it is an address of another kind.
    """
    if "://" in (text := text.strip()):
        return _name_in_address(text)
    match = _NAME.fullmatch(text)
    if match is None or ".." in text:
        return None
    return HubName(match["repo"], match["revision"] or "")


def _name_in_address(text: str) -> HubName:
    """The model of a page: /ORG/NAME, perhaps with /tree/REVISION or a file of it."""
    from model.huggingface.offline import HOSTS

    try:
        where = urlsplit(text)
        known = where.hostname in HOSTS and where.scheme in ("http", "https")
    except ValueError:  # such as a port that is no number
        known = False
    parts = [unquote(part) for part in where.path.split("/") if part] if known else []
    # a model may be called `tree`, so the first part of a path is never a kind of page
    at = next((index for index, part in enumerate(parts) if part in _PAGES and index), len(parts))
    name = "/".join(parts[: min(at, 2)]) + (f"@{parts[at + 1]}" if len(parts) > at + 1 else "")
    match = _NAME.fullmatch(name)
    if match is None or ".." in name or name.startswith(PREFIX):
        raise NotAHubPage(found=text[:200], hosts=", ".join(sorted(HOSTS, key=len)[:3]))
    return HubName(match["repo"], match["revision"] or "")
