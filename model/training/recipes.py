"""Recipes: small readable files that say how a checkpoint of this project is trained. One TOML file each, in recipes/."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from model.checkpoints.native import Info
from model.errors import BadSetting, UnknownModel
from model.spec.network import ModelSpec, Share, from_json
from model.spec.validation import Between, read
from model.tokenizers.words import SPECIALS, Split, WordTokenizer, learn_pieces, learn_vocabulary
from model.training import corpora
from model.training.corpora import Corpus

Count: TypeAlias = Annotated[int, Between(1, 10**9)]
Rate: TypeAlias = Annotated[float, Between(0.0, 10.0)]

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Side:
    """Source or target.

    Attributes:
        language: for axes.
        split: the way to split a text into words.
        min_freq: how often a word must occur to be known.
        pieces: how many texts the vocabulary has at most where words are spelled in pieces; 0: words are known whole or not at all.
        skipped_joins: share of the joins of pieces that are skipped while training, others in each epoch (model/tokenizers/bpe.py).
    """

    language: str
    split: Split
    min_freq: Count = 1
    pieces: Annotated[int, Between(0, 10**6)] = 0
    skipped_joins: Share = 0.0

    def __post_init__(self) -> None:
        """Refuses what would have no effect.

        Raises:
            BadSetting: both `min_freq` and `pieces` say what is known, or joins are skipped where there are none.
        """
        if self.pieces and self.min_freq > 1:
            raise BadSetting(name="min_freq", found=self.min_freq, allowed="left out where pieces are learned")
        if self.skipped_joins and not self.pieces:
            raise BadSetting(name="skipped_joins", found=self.skipped_joins, allowed="left out where no pieces are learned")

    def tokenizer(self, texts: Iterable[str], framed: bool) -> WordTokenizer:
        """What the training texts teach: the words, or the pieces that they are spelled with."""
        if self.pieces:
            return learn_pieces(texts, self.split, self.pieces, framed)
        return learn_vocabulary(texts, self.split, self.min_freq, framed)


@dataclass(frozen=True)
class Phase:
    """A stretch of training with settings of its own; the learning rate goes from the first value to the second in a straight line.

    Attributes:
        epochs: passes over the training data.
        learning_rates: of AdamW, at the phase's beginning and at its end.
        label_smoothing: share of the target probability spread over the vocabulary.
        dropout: share of values dropped, everywhere alike.
        consistency: how much two passes over the same sentences, with other values dropped in each, must agree: the weight of their
            mean divergence beside the cross entropy (half of α in Liang et al. 2021, "R-Drop", equation 4); 0: one pass.
        keeps: which epoch's weights stand for the phase: that of the best validation loss, or the last.
    """

    epochs: Count
    learning_rates: tuple[Rate, ...]
    label_smoothing: Share
    dropout: Share
    consistency: Annotated[float, Between(0.0, 100.0)] = 0.0
    keeps: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        """Refuses more or fewer than two learning rates.

        Raises:
            BadSetting: there are not two.
        """
        if len(self.learning_rates) != 2:
            raise BadSetting(name="learning_rates", found=list(self.learning_rates), allowed="two: at the beginning and at the end")


@dataclass(frozen=True)
class Optimisation:
    """How the weights are found.

    Attributes:
        seed: of initial weights, order of sentences and dropout.
        precision: what products are computed in while training; weights, sums and losses are float32.
        sentences_per_batch: examples of a step.
        warmup_steps: steps in which the learning rate rises to the first phase's.
        weight_decay: of matrices; biases and norms have none.
        gradient_norm: longer gradients are shortened to this.
        average: share of the running mean of the weights that stays at each step; the mean is what is validated and kept.
        patience: epochs without a better validation loss before training stops.
        phases: one after the other.
        shares: of each phase's weights in the mean that is kept at the end; empty: the best of all phases is kept.
        calibrate: at the end, fit three numbers of the output layer to the validation data (model/training/calibration.py).
    """

    seed: Annotated[int, Between(0, 2**32)]
    precision: Literal["float32", "bfloat16"]
    sentences_per_batch: Count
    warmup_steps: Count
    weight_decay: Annotated[float, Between(0.0, 10.0)]
    gradient_norm: Annotated[float, Between(1e-9, 1e9)]
    average: Annotated[float, Between(0.0, 0.999999)]
    patience: Count
    phases: tuple[Phase, ...]
    shares: tuple[Rate, ...] = ()
    calibrate: bool = False

    def __post_init__(self) -> None:
        """Refuses shares that are not one for each phase, summing to 1.

        Raises:
            BadSetting: they are not.
        """
        if self.shares and (len(self.shares) != len(self.phases) or abs(sum(self.shares) - 1) > 1e-6):
            raise BadSetting(name="shares", found=list(self.shares), allowed="one for each phase, summing to 1, or left out")

    @property
    def epochs(self) -> int:
        """Passes over the training data at most."""
        return sum(phase.epochs for phase in self.phases)

    def number(self, epoch: int) -> int:
        """The index of the phase that an epoch, counted from 0, belongs to."""
        ends = accumulate(phase.epochs for phase in self.phases)
        return min(sum(epoch >= end for end in ends), len(self.phases) - 1)

    def phase(self, epoch: int) -> Phase:
        """The phase that an epoch, counted from 0, belongs to."""
        return self.phases[self.number(epoch)]

    def learning_rate(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step counted from 0."""
        number = self.number(step // steps_per_epoch)
        phase, first = self.phases[number], sum(phase.epochs for phase in self.phases[:number])
        begin, end = phase.learning_rates
        through = min(1.0, (step / steps_per_epoch - first) / phase.epochs)
        return min(1.0, (step + 1) / self.warmup_steps) * (begin + through * (end - begin))


@dataclass(frozen=True)
class Recipe:
    """One recipe, checked. A language model has no `target` and no `encoder`: it continues its source.

    Attributes:
        name, title, summary, examples: of the checkpoint, as in Info.
        data: a corpus of model/training/corpora.py in plain values.
        source, target: the strips of the network.
        encoder, decoder: StackSpecs without `vocab`, which the data decides.
        output: an OutputSpec.
        optimisation: how the weights are found.
    """

    name: str
    title: str
    summary: str
    examples: tuple[str, ...]
    data: dict[str, Any]
    source: Side
    decoder: dict[str, Any]
    optimisation: Optimisation
    target: Side | None = None
    encoder: dict[str, Any] | None = None
    output: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a target that nothing reads the source for, and the other way round.

        Raises:
            BadSetting: there is one of target and encoder without the other, or a running text would be spelled anew.
        """
        if (self.target is None) != (self.encoder is None):
            there, missing = ("target", "encoder") if self.encoder is None else ("encoder", "target")
            raise BadSetting(name=there, found="given", allowed=f"given with {missing}, or left out where a text is continued")
        if self.target is None and self.source.skipped_joins:  # its stretches would begin elsewhere in each epoch
            raise BadSetting(name="skipped_joins", found=self.source.skipped_joins, allowed="left out where a text is continued")

    @property
    def corpus(self) -> Corpus:
        """Where the texts come from."""
        return corpora.from_json(self.data, f"recipe {self.name}.data")

    @property
    def sides(self) -> dict[str, Side]:
        """The strips by name."""
        return {"source": self.source} if self.target is None else {"source": self.source, "target": self.target}

    def spec(self, vocabularies: Sequence[int]) -> ModelSpec:
        """The network for vocabularies of these sizes, one for each strip. `<unk>`, `<pad>` and `<sos>` are never written."""
        encoder = None if self.encoder is None else {**self.encoder, "vocab": vocabularies[0]}
        return from_json(
            {
                "encoder": encoder,
                "decoder": {**self.decoder, "vocab": vocabularies[-1]},
                "output": self.output,
                "dropout": self.optimisation.phases[-1].dropout,
                "suppressed": [0, 1, 2],
            }
        )

    def info(self, vocabularies: Sequence[int]) -> Info:
        """What spec.json of the trained checkpoint says."""
        return Info(
            name=self.name,
            title=self.title,
            summary=self.summary,
            languages={strip: side.language for strip, side in self.sides.items()},
            examples=self.examples,
            data=self.data,
            spec=self.spec(vocabularies),
        )


def load(name: str) -> Recipe:
    """The recipe called `name`, or in the TOML file of that path.

    Raises:
        UnknownModel: there is no such recipe.
        BadSetting: the file has a field too many or too few, or a value outside what is allowed.
    """
    path = FOLDER / f"{name}.toml" if not name.endswith(".toml") else Path(name)
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise UnknownModel(asked=name, there=f"the recipes {there}")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadSetting(name=f"recipe {path.name}", found=str(error), allowed="a TOML file like those in recipes/") from error
    recipe = read(Recipe, data | {"name": path.stem}, f"recipe {path.name}")
    recipe.spec([len(SPECIALS), len(SPECIALS)])  # a bad network is refused now, not after the corpus was read
    _ = recipe.corpus
    return recipe
