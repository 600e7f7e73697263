"""A foreign tokenizer, as the parent sees it: its vocabulary, and questions to the process that cuts its texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from model.errors import DamagedFile, TokenizerDied, TokenizerTooLarge, TokenizerTooSlow, TooManyTokens
from model.safe_loading.worker import ROOT, Ended, Worker, bare_python
from model.tokenizers.subwords import limits

CHILD = (
    "import sys; memory, *places = sys.argv[1:]; sys.path[:0] = places; sys.modules['torch'] = None; "
    "from model.tokenizers.subwords.child import main; main(int(memory))"
)
"""What the process runs. It is told where the libraries are; torch, which it does not need, cannot be imported."""


@dataclass(frozen=True)
class Cut:
    """A text that was cut.

    Attributes:
        ids: of its tokens.
        typed: for each the part of the text that it stands for, as far as is known.
    """

    ids: tuple[int, ...]
    typed: tuple[str, ...]


class TokenizerProcess:
    """The rules of one file, or of one folder, in a process of their own.

    Args:
        path: of the file, as a sentence calls it.
        rules: what the process is to read, in the words of `readers.read`.
        size: ids that the network has; others are not asked for.

    Attributes:
        tokens: text by id.
        special: ids that stand for no text.
        unknown: the id of what is unknown; None: there is none.
        byte_level: whether texts are bytes written as signs.

    Raises:
        DamagedFile: the rules cannot be read.
        TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: reading them went beyond the bounds.
    """

    def __init__(self, path: Path | str, rules: Mapping[str, Any], size: int) -> None:
        self._path = "/".join(Path(path).parts[-2:])  # a run's errors are read by strangers too: the rest of the path is not theirs
        first = {**rules, "size": size, "seconds": limits.SECONDS_TO_OPEN}
        self._worker = Worker(_command(), first, limits.SECONDS_TO_OPEN)
        try:
            known = self._worker.opened()
        except Ended as end:
            raise self._in_words(end, limits.SECONDS_TO_OPEN) from end
        if "error" in known:
            self._worker.close()
            raise DamagedFile(path=path, detail=known["error"])
        self.tokens: dict[int, str] = dict(known["tokens"])
        self.special = frozenset[int](known["special"])
        self.unknown: int | None = known["unknown"]
        self.byte_level: bool = known["byte_level"]

    def encode(self, text: str, name: str, special: bool = True) -> Cut:
        """The tokens of a text.

        Args:
            name: of its strip, `source` or `target`.
            special: whether what the rules put around a text is added.

        Raises:
            TooManyTokens: there are more than are taken from a foreign tokenizer.
            TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: it went beyond the bounds; the next text finds a fresh process.
        """
        found = self._ask({"text": text, "special": special, "target": name == "target"})
        if "ids" not in found:
            reason = "the limit for a foreign tokenizer"
            raise TooManyTokens(what=f"{name} text", found=found["tokens"], allowed=limits.MAX_TOKENS, reason=reason)
        typed = [text[first:last] for first, last in found["offsets"]] if "offsets" in found else found["pieces"]
        return Cut(tuple(found["ids"]), tuple(typed))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special ones left out.

        Raises:
            TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: as for `encode`.
        """
        return str(self._ask({"ids": list(ids)})["text"])

    @property
    def pid(self) -> int | None:
        """Of the process; None: there is none now."""
        return self._worker.pid

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            found = self._worker.ask({**question, "seconds": limits.SECONDS_TO_CUT}, limits.SECONDS_TO_CUT)
        except Ended as end:
            raise self._in_words(end, limits.SECONDS_TO_CUT) from end
        if "error" in found:
            raise TokenizerDied(path=self._path, detail=found["error"])
        return found

    def _in_words(self, end: Ended, seconds: int) -> TokenizerTooSlow | TokenizerTooLarge | TokenizerDied:
        if end.reason == "time":
            return TokenizerTooSlow(path=self._path, seconds=seconds)
        if end.reason in ("memory", "length"):
            return TokenizerTooLarge(path=self._path, allowed=f"{limits.MAX_MEMORY:,}")
        return TokenizerDied(path=self._path, detail=end.said)


def _command() -> list[str]:
    libraries = find_spec("tokenizers")
    assert libraries is not None
    assert libraries.origin is not None
    return bare_python(CHILD, str(limits.MAX_MEMORY), str(ROOT), str(Path(libraries.origin).parents[1]))
