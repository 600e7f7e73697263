"""The parent's side of a foreign tokenizer: its vocabulary, and requests to the child process that encodes and decodes."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from model.errors import BadChat, DamagedFile, TokenizerDied, TokenizerTooLarge, TokenizerTooSlow, TooManyTokens, phrase
from model.requests.inputs import Chat
from model.safe_loading.worker import ROOT, Ended, Worker, bare_python
from model.tokenizers.chat import ChatTemplate
from model.tokenizers.subwords import limits
from model.trace.types import Tokens

CHILD = (
    "import sys; memory, *places = sys.argv[1:]; sys.path[:0] = places; sys.modules['torch'] = None; "
    "from model.tokenizers.subwords.child import main; main(int(memory))"
)
"""The program of the child process. Its arguments say where the libraries are. It does not need torch and cannot import it."""


@dataclass(frozen=True)
class Cut:
    """An encoded text.

    Attributes:
        ids: ids of its tokens.
        typed: the part of the text that each token was made from; empty where it is not known.
    """

    ids: tuple[int, ...]
    typed: tuple[str, ...]

    def keep_unknown(self, strip: Tokens) -> Tokens:
        """The strip of these ids in which unknown tokens have the text that they were made from, where it is known."""
        parts = zip(self.typed, strip.unknown, strip.texts, strict=True)
        texts = tuple(typed if unknown and typed else text for typed, unknown, text in parts)
        return replace(strip, texts=texts)


class TokenizerProcess:
    """The tokenizer of one file or folder, in a child process.

    Args:
        path: path of the file, for errors.
        rules: what the process reads, in the form that `readers.read` takes.
        size: number of ids that the network has; tokens with larger ids are left out.

    Attributes:
        tokens: text by id.
        special: ids of the special tokens.
        unknown: id of the unknown token; None: there is none.
        byte_level: whether the texts of tokens are bytes, each written as one character.
        failure: why files beside tokenizer.json, which may change its ids, were not read; empty: they were, or there are none.

    Raises:
        DamagedFile: the tokenizer cannot be read.
        TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: reading it went beyond the limits.
    """

    def __init__(self, path: Path | str, rules: Mapping[str, Any], size: int) -> None:
        self._path = "/".join(Path(path).parts[-2:])  # strangers read a run's errors too and must not learn the whole path
        first = {**rules, "size": size, "seconds": limits.SECONDS_TO_OPEN}
        self._worker = Worker(_command(), first, limits.SECONDS_TO_OPEN)
        try:
            known = self._worker.opened()
        except Ended as end:
            raise self._error_about(end, limits.SECONDS_TO_OPEN) from end
        if "error" in known:
            self._worker.close()
            raise DamagedFile(path=path, detail=known["error"])
        self.tokens: dict[int, str] = dict(known["tokens"])
        self.special = frozenset[int](known["special"])
        self.unknown: int | None = known["unknown"]
        self.byte_level: bool = known["byte_level"]
        self.failure = str(known.get("failure", ""))

    def encode(self, text: str, name: str, special: bool = True) -> Cut:
        """The tokens of a text.

        Args:
            name: name of the strip, `source` or `target`.
            special: whether the special tokens that the tokenizer puts around a text are added.

        Raises:
            TooManyTokens: there are more tokens than a foreign tokenizer may return.
            TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: it went beyond its limits; the next text gets a new process.
        """
        text = _without_lone_surrogates(text)
        return _cut(self._ask({"text": text, "special": special, "target": name == "target"}), text, name)

    def encode_chat(self, chat: Chat, template: ChatTemplate) -> tuple[Cut, str, tuple[int, ...]]:
        """The tokens of a conversation, the text that its template made of it, and the first token of each turn and of the reply.

        Raises:
            BadChat: the template refuses the conversation, or fails.
            TooManyTokens, TokenizerFailed: as for `encode`.
        """
        turns = [(turn.role, _without_lone_surrogates(turn.text)) for turn in chat.turns]
        try:
            answer = self._ask({"turns": turns, "template": template.source, "specials": dict(template.specials)})
        except Ended as end:
            reason = phrase("the model’s chat template took more than {most:,} bytes of memory", most=limits.TEMPLATE_MEMORY)
            raise BadChat(reason=reason) from end
        if "refused" in answer:
            raise BadChat(reason=phrase("the model’s chat template refuses it: “{said}”", said=answer["refused"]))
        cut, text = _cut(answer, answer.get("text", ""), "chat"), str(answer.get("text", ""))
        # from places in the text to tokens: the first token that begins there
        begins = [first for first, _last in answer.get("offsets", ())]
        return cut, text, tuple(bisect_left(begins, start) for start in answer["starts"]) if begins else ()

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens.

        Raises:
            TokenizerTooSlow, TokenizerTooLarge, TokenizerDied: as for `encode`.
        """
        return str(self._ask({"ids": list(ids)})["text"])

    @property
    def pid(self) -> int | None:
        """Process id of the child; None: no child is running."""
        return self._worker.pid

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._worker.ask({**question, "seconds": limits.SECONDS_TO_CUT}, limits.SECONDS_TO_CUT)
        except Ended as end:
            if end.reason == "template":
                raise
            raise self._error_about(end, limits.SECONDS_TO_CUT) from end
        if "error" in answer:
            raise TokenizerDied(path=self._path, detail=answer["error"])
        return answer

    def _error_about(self, end: Ended, seconds: int) -> TokenizerTooSlow | TokenizerTooLarge | TokenizerDied:
        if end.reason == "time":
            return TokenizerTooSlow(path=self._path, seconds=seconds)
        if end.reason in ("memory", "length"):
            return TokenizerTooLarge(path=self._path, allowed=f"{limits.MAX_MEMORY:,}")
        return TokenizerDied(path=self._path, detail=end.stderr)


def _without_lone_surrogates(text: str) -> str:
    """A text of characters alone: a lone surrogate becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _cut(answer: Mapping[str, Any], text: str, strip: str) -> Cut:
    """The tokens in an answer of the process.

    Raises:
        TooManyTokens: there are more than a foreign tokenizer may return.
    """
    if "ids" not in answer:
        reason = phrase("an external tokenizer may return no more")
        raise TooManyTokens(found=answer["tokens"], allowed=limits.MAX_TOKENS, reason=reason, strip=strip)
    # without offsets the library tells pieces, which may be empty
    typed = [text[first:last] for first, last in answer["offsets"]] if "offsets" in answer else answer["pieces"]
    return Cut(tuple(answer["ids"]), tuple(typed))


def _command() -> list[str]:
    libraries = find_spec("tokenizers")
    assert libraries is not None
    assert libraries.origin is not None
    return bare_python(CHILD, str(limits.MAX_MEMORY), str(ROOT), str(Path(libraries.origin).parents[1]))
