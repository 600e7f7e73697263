"""Questions that a file leaves open, and their answers: from `--set`, a spec.json beside the file, or a form."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from model.errors import BadSetting, OpenQuestions, UnknownField, Words, phrase
from model.requests.network import Activation, DecodePositions, EmbedScale, NormOrder, Positions
from model.tokenizers.vocabulary import SPLITS


@dataclass(frozen=True)
class Question:
    """One property that names and shapes do not tell.

    Attributes:
        name: its name in `--set`.
        consequence: a sentence on what depends on the answer.
        allowed: allowed answers; empty: a whole number up to `highest`, or a file if that is None.
        highest: the largest number allowed.
        default: the default answer; None: none.
        needed: whether the network cannot be built without an answer.
        also: settings that answer this and other questions at once.
        proposal: an answer that suggests itself and is not known to be right; empty: none does.
    """

    name: str
    consequence: Words
    allowed: tuple[str, ...] = ()
    highest: int | None = None
    default: str | None = None
    needed: bool = True
    also: tuple[str, ...] = ()
    proposal: str = ""

    @property
    def words(self) -> Words:
        """The allowed answers in words."""
        if self.allowed:
            return ", ".join(self.allowed)
        return phrase("a file") if self.highest is None else phrase("a whole number from 0 to {highest}", highest=self.highest)

    @property
    def form(self) -> str:
        """The setting as typed, with the proposed value, or with those that are allowed."""
        return f"--set {self.name}={self.proposal or '|'.join(self.allowed) or ('FILE' if self.highest is None else 'ID')}"

    def plain(self, value: str) -> str | None:
        """An answer as this question writes it: numbers are compared as numbers, 1e-5 is 1e-05. None: it is not allowed."""
        if self.allowed:
            number = _number(value)
            alike = (answer for answer in self.allowed if number is not None and _number(answer) == number)
            return value if value in self.allowed else next(alike, None)
        if self.highest is None:
            return value
        number = _number(value)
        return str(int(number)) if number is not None and number.is_integer() and 0 <= number <= self.highest else None

    def allows(self, value: str) -> bool:
        """Whether `value` is an answer."""
        return self.plain(value) is not None

    def check(self, value: str) -> str:
        """`value` as `plain` writes it, if it is allowed.

        Raises:
            BadSetting: it is not allowed.
        """
        if (answer := self.plain(value)) is None:
            raise BadSetting(name=self.name, found=value, allowed=self.words)
        return answer


def _number(text: str) -> float | None:
    """The finite number in a text; None: it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Answers:
    """Checked answers by question. Missing ones are not required."""

    of: Mapping[str, str]

    def text(self, name: str) -> str:
        """The answer as text."""
        return self.of[name]

    def number(self, name: str) -> int:
        """The answer as a number."""
        return int(self.of[name])

    def optional_number(self, name: str) -> int | None:
        """The answer as a number; None: not given."""
        return int(self.of[name]) if name in self.of else None

    @property
    def positions(self) -> Positions:
        """The kind of positional encoding."""
        return cast(Positions, self.of["positions"])

    @property
    def decode_positions(self) -> DecodePositions:
        """Which positions a cached decode gives."""
        return cast(DecodePositions, self.of["decode_positions"])

    def fields(self) -> dict[str, Any]:
        """The answers that are fields of every stack, by field."""
        return {name: read(self.of[name]) for name, read in _FIELDS.items() if name in self.of}


_FIELDS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("norm_order", "norm", "activation", "embed_scale"), str),
    **dict.fromkeys(("rotary_base", "max_positions"), int),
    "norm_epsilon": float,
    "causal": "true".__eq__,
}
"""How the text of an answer becomes the value of a stack's field."""


def settle(questions: Sequence[Question], settings: Mapping[str, str], path: str, layout: str) -> Answers:
    """Answers to all questions.

    Raises:
        BadSetting: a setting that no question asks for, or a value that is not allowed.
        OpenQuestions: a required question is open; the error lists each and how to answer it.
    """
    # a setting that no question asks for is a mistake in typing, or meant for another layout
    names = [name for question in questions for name in (question.name, *question.also)]
    for name in settings:
        if name not in names:
            raise UnknownField(name=layout, found=name, allowed=", ".join(dict.fromkeys(names)))
    answers = {question.name: answer for question in questions if (answer := answer_of(question, settings)) is not None}
    unanswered = [question for question in questions if question.needed and question.name not in answers]
    if unanswered:
        raise OpenQuestions(
            path=path,
            layout=layout,
            open=", ".join(question.name for question in unanswered),
            settings=" ".join(question.form for question in unanswered),
        )
    return Answers(answers)


def answer_of(question: Question, settings: Mapping[str, str]) -> str | None:
    """The given answer, else the default; None: the question is open.

    Raises:
        BadSetting: the given answer is not allowed.
    """
    for name in (question.name, *question.also):
        if name in settings:
            return question.check(settings[name])
    return question.default


def divisors(number: int) -> tuple[str, ...]:
    """The divisors of `number` up to 1,000, as texts."""
    return tuple(str(candidate) for candidate in range(1, min(number, 1000) + 1) if number % candidate == 0)


def heads(name: str, width: int, settings: Mapping[str, str], also: tuple[str, ...] = ()) -> Question:
    """The number of heads that share `width` columns. A given head_dim answers it too."""
    head_dim = settings.get("head_dim", "")
    # whoever knows the width of a head need not count heads
    known = str(width // int(head_dim)) if head_dim in divisors(width) else None
    consequence = phrase(
        "Splits {width:,} columns into heads. A wrong number gives wrong maps, which still look plausible.", width=width
    )
    return Question(name, consequence, divisors(width), default=known, also=also)


def head_dim(*widths: int) -> Question:
    """The width of one head, another way to give the number of heads."""
    common = tuple(value for value in divisors(widths[0]) if all(width % int(value) == 0 for width in widths))
    return Question(
        "head_dim", phrase("The width of a head. It can be given instead of the number of heads."), common, needed=False
    )


def heads_of_both(encoder: int, decoder: int, settings: Mapping[str, str]) -> tuple[Question, ...]:
    """How many heads share the columns of a translator's encoder and decoder; one answer, n_heads, serves both."""
    return (
        heads("encoder_heads", encoder, settings, also=("n_heads",)),
        heads("decoder_heads", decoder, settings, also=("n_heads",)),
        head_dim(encoder, decoder),
    )


def choice(name: str, consequence: Words, kind: Any, default: str | None = None, also: tuple[str, ...] = ()) -> Question:
    """A question with the choices of a Literal."""
    return Question(name, consequence, get_args(kind), default=default, also=also)


def norm_order(default: str | None = None) -> Question:
    """The norm order: post-norm or pre-norm."""
    return choice(
        "norm_order",
        phrase("Normalization comes after each sum (post) or before each sublayer (pre). The tensor names are the same for both."),
        NormOrder,
        default,
    )


def activation(default: str | None = None) -> Question:
    """The activation function of the feed-forward network."""
    return choice(
        "activation", phrase("The activation function between the two matrices of the feed-forward network."), Activation, default
    )


def embed_scale(default: str | None = None) -> Question:
    """Whether embeddings are scaled."""
    consequence = phrase("Embeddings are multiplied by the square root of their width (sqrt) or not (none).")
    return choice("embed_scale", consequence, EmbedScale, default)


def decode_positions(default: str) -> Question:
    """Which positions a cached decode gives."""
    consequence = phrase(
        "The token generated in step t gets position t (running), or every generated token gets position 0 (zero)."
    )
    return choice("decode_positions", consequence, DecodePositions, default)


def causal(
    default: str | None,
    consequence: Words = phrase("Whether a target position is prevented from attending to later ones (causal mask)."),
) -> Question:
    """Whether the decoder's mask hides the future."""
    return Question("causal", consequence, ("true", "false"), default=default)


def id_(name: str, vocab: int, consequence: Words, needed: bool = False, also: tuple[str, ...] = ()) -> Question:
    """A token's id."""
    return Question(name, consequence, highest=vocab - 1, needed=needed, also=also)


def padding_ids(*vocab: int) -> tuple[Question, ...]:
    """The ids of padding, by the sizes of the vocabularies: the source's, and the target's where there is one."""
    hidden = phrase("Positions with this id are masked (padding mask).")
    names = ("source_pad_id", "target_pad_id")
    return tuple(id_(name, size, hidden, needed=True, also=("pad_id",)) for name, size in zip(names, vocab, strict=False))


def decoding_ids(vocab: int) -> tuple[Question, ...]:
    """The ids that decoding needs; without them, targets can still be given."""
    return (
        id_("bos_id", vocab, phrase("Decoding begins with this token; without it, a target must be given.")),
        id_("eos_id", vocab, phrase("Decoding ends with this token; without it, decoding runs to the maximum length.")),
        id_("unk_id", vocab, phrase("Stands for words that the vocabulary does not have.")),
    )


def vocabularies(*names: str) -> tuple[Question, ...]:
    """Vocabulary files, one for each name, and how to split texts."""
    files = tuple(
        Question(name, phrase("The vocabulary: the text of each id. Without it, ids are shown as numbers."), needed=False)
        for name in names
    )
    splits = (*SPLITS, "spacy-de,spacy-en", "spacy-en,spacy-de") if len(names) > 1 else tuple(SPLITS)
    split = Question(
        "tokenizer",
        phrase("How typed text is split into tokens. Two names with a comma: one for the source, one for the target."),
        splits,
        default="split",
    )
    return (*files, split)


# --- Llama-like networks: rotary positions, RMSNorm and grouped queries -----------------------------------------------------

LONGEST = 4096
"""Positions at most where nothing bounds them."""

NO_HEADS = phrase("the sizes of its queries and keys fit no number of heads")
"""Evidence against a layout with grouped queries."""


def head_widths(queries: int, keys: int) -> tuple[int, ...]:
    """The widths that a head can have: even, and each head of keys is shared by equally many heads of queries.

    Args:
        queries, keys: columns of all heads' queries, and of all heads' keys.
    """
    if not keys or queries % keys:
        return ()
    return tuple(int(width) for width in divisors(keys) if int(width) % 2 == 0 and queries // int(width) <= 1000)


def grouped_heads(queries: int, keys: int, settings: Mapping[str, str]) -> tuple[Question, ...]:
    """The number of heads where several may share keys and values; one of three answers gives the others.

    Args:
        queries, keys: columns of all heads' queries, and of all heads' keys.
        settings: of which n_heads, key_heads and head_dim count.
    """
    widths = head_widths(queries, keys)
    fitting = {
        "n_heads": [str(queries // width) for width in widths],
        "key_heads": [str(keys // width) for width in widths],
        "head_dim": [str(width) for width in widths],
    }
    # one of the three numbers gives the others, since sizes are known
    known = next((values.index(settings[name]) for name, values in fitting.items() if settings.get(name) in values), None)
    consequences = {
        "n_heads": phrase(
            "Splits {queries:,} columns of queries and {keys:,} columns of keys into heads. A wrong number gives wrong maps.",
            queries=queries,
            keys=keys,
        ),
        "key_heads": phrase(
            "The number of key and value heads, which several query heads may share. It can be given instead of n_heads."
        ),
        "head_dim": phrase("The width of a head. It can be given instead of the number of heads."),
    }
    defaults = {name: None if known is None else values[known] for name, values in fitting.items()}
    return tuple(
        Question(name, words, tuple(fitting[name]), default=defaults[name], needed=name == "n_heads")
        for name, words in consequences.items()
    )


def rotary_base() -> Question:
    """The base of rotary positions, as programs call it: rope_theta."""
    consequence = phrase("The base of rotary positions (rope_theta): 10000 in llama2.c and Llama 1 and 2, 500000 in Llama 3.")
    return Question("rotary_base", consequence, highest=10**9)


def variant() -> Question:
    """Whether the network has none of the options that leave no trace in names and shapes; there is one answer that can be run."""
    consequence = phrase(
        "Names and shapes do not show scaled rotary positions (Llama 3.1 and later), normalization by 1 + weight "
        "(Gemma) or sliding windows (Mistral 7B v0.1). The maps would be wrong for those. Answer plain if the "
        "network has none of them."
    )
    return Question("variant", consequence, ("plain",))


def norm_epsilon() -> Question:
    """The ε of the normalization, added before the root."""
    consequence = phrase("ε of the normalization, added before the root: 1e-05 in llama2.c and Llama 2 and 3, 1e-06 in Llama 1.")
    return Question("norm_epsilon", consequence, ("1e-05", "1e-06", "1e-08", "1e-12"))


def max_positions(default: int) -> Question:
    """The longest input where no table bounds it."""
    consequence = phrase("The longest input that may run. Rotary positions set no limit themselves.")
    return Question("max_positions", consequence, highest=2**17, default=str(default))
