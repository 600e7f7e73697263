"""Recipes: how the checkpoints of this project are trained. Each is one small TOML file in recipes/."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from model.checkpoints.native import Info, check_labels
from model.errors import BadSetting, UnknownModel
from model.features.training import corpora
from model.features.training.corpora import Corpus
from model.requests.network import ModelSpec, Share, from_json
from model.requests.validation import Between, read
from model.tokenizers.words import SPECIALS, Split, WordTokenizer, learn_pieces, learn_vocabulary

Count: TypeAlias = Annotated[int, Between(1, 10**9)]
Rate: TypeAlias = Annotated[float, Between(0.0, 10.0)]

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Side:
    """The tokenizer settings of one strip, source or target.

    Attributes:
        language: name of the language, shown at axes.
        split: the way to split a text into words.
        min_freq: how often a word must occur to be in the vocabulary.
        pieces: most entries in a vocabulary of pieces (byte pair encoding); 0: the vocabulary holds whole words.
        skipped_joins: share of joins skipped in training, others in each epoch (BPE-dropout, model/tokenizers/bpe.py).
    """

    language: str
    split: Split
    min_freq: Count = 1
    pieces: Annotated[int, Between(0, 10**6)] = 0
    skipped_joins: Share = 0.0

    def __post_init__(self) -> None:
        """Refuses settings that would have no effect.

        Raises:
            BadSetting: both `min_freq` and `pieces` are given, or `skipped_joins` without `pieces`.
        """
        if self.pieces and self.min_freq > 1:
            raise BadSetting(name="min_freq", found=self.min_freq, allowed="left out where pieces are learned")
        if self.skipped_joins and not self.pieces:
            raise BadSetting(name="skipped_joins", found=self.skipped_joins, allowed="left out where no pieces are learned")

    def tokenizer(self, texts: Iterable[str], framed: bool) -> WordTokenizer:
        """The tokenizer with the vocabulary of the training texts: words, or pieces of words."""
        if self.pieces:
            return learn_pieces(texts, self.split, self.pieces, framed)
        return learn_vocabulary(texts, self.split, self.min_freq, framed)


@dataclass(frozen=True)
class Phase:
    """A phase of training with its own settings. The learning rate changes linearly from the first value to the second.

    Attributes:
        epochs: passes over the training data.
        learning_rates: learning rates of AdamW at the beginning and at the end of the phase.
        label_smoothing: share of the target probability that is spread over the vocabulary.
        dropout: share of values dropped, the same everywhere.
        consistency: weight of the R-Drop term, the mean divergence of two passes over the same sentences with different dropout,
            added to the cross entropy (half of α in Liang et al. 2021, "R-Drop", equation 4); 0: one pass only.
        keeps: whether the phase's weights are those of the epoch with the best validation loss, or of the last epoch.
    """

    epochs: Count
    learning_rates: tuple[Rate, ...]
    label_smoothing: Share
    dropout: Share
    consistency: Annotated[float, Between(0.0, 100.0)] = 0.0
    keeps: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        """Checks that there are two learning rates.

        Raises:
            BadSetting: there are more or fewer.
        """
        if len(self.learning_rates) != 2:
            raise BadSetting(name="learning_rates", found=list(self.learning_rates), allowed="two: at the beginning and at the end")


@dataclass(frozen=True)
class Optimisation:
    """The settings of the optimization.

    Attributes:
        seed: seed of initial weights, order of sentences and dropout.
        precision: number type of matrix products in training; weights, sums and losses are float32.
        sentences_per_batch: number of examples in a step.
        warmup_steps: number of steps in which the learning rate rises to that of the first phase.
        weight_decay: weight decay of matrices; biases and norms have none.
        gradient_norm: largest norm of a gradient; longer ones are clipped.
        average: decay of the exponential moving average of the weights; this average is validated and saved.
        patience: number of epochs without a better validation loss before training stops.
        phases: the phases of training, in order.
        shares: share of each phase's weights in the average that is saved at the end; empty: the best weights of all are saved.
        calibrate: whether the output layer is calibrated on the validation data at the end (calibration.py).
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
        """Checks that there is a share for each phase and that they sum to 1.

        Raises:
            BadSetting: the shares do not fit.
        """
        if self.shares and (len(self.shares) != len(self.phases) or abs(sum(self.shares) - 1) > 1e-6):
            raise BadSetting(name="shares", found=list(self.shares), allowed="one for each phase, summing to 1, or left out")

    @property
    def epochs(self) -> int:
        """Most passes over the training data, in all phases."""
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
        name, title, summary, examples, example_labels: fields of the checkpoint's Info.
        data: a corpus of model/features/training/corpora.py, in plain values.
        source, target: tokenizer settings of the strips.
        encoder, decoder: StackSpecs without `vocab`, which depends on the data.
        output: an OutputSpec.
        optimisation: the settings of the optimization.
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
    example_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Checks that target and encoder are given together.

        Raises:
            BadSetting: one is given without the other, a language model has `skipped_joins`, or labels do not match the examples.
        """
        check_labels(self.examples, self.example_labels)
        if (self.target is None) != (self.encoder is None):
            given, missing = ("target", "encoder") if self.encoder is None else ("encoder", "target")
            raise BadSetting(name=given, found="given", allowed=f"given with {missing}, or left out where a text is continued")
        if self.target is None and self.source.skipped_joins:  # its windows would begin elsewhere in each epoch
            raise BadSetting(name="skipped_joins", found=self.source.skipped_joins, allowed="left out where a text is continued")

    @property
    def corpus(self) -> Corpus:
        """The corpus that `data` describes."""
        return corpora.from_json(self.data, f"recipe {self.name}.data")

    @property
    def sides(self) -> dict[str, Side]:
        """The tokenizer settings by strip."""
        return {"source": self.source} if self.target is None else {"source": self.source, "target": self.target}

    def spec(self, vocabularies: Sequence[int]) -> ModelSpec:
        """The network's spec, given the vocabulary size of each strip. `<unk>`, `<pad>` and `<sos>` are suppressed."""
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
        """The contents of the checkpoint's spec.json."""
        return Info(
            name=self.name,
            title=self.title,
            summary=self.summary,
            languages={strip: side.language for strip, side in self.sides.items()},
            examples=self.examples,
            data=self.data,
            spec=self.spec(vocabularies),
            example_labels=self.example_labels,
        )


def load(name: str) -> Recipe:
    """Loads the recipe called `name`, or the TOML file at that path.

    Raises:
        UnknownModel: there is no such recipe.
        BadSetting: a field is unknown or missing, or a value is outside its limits.
    """
    path = FOLDER / f"{name}.toml" if not name.endswith(".toml") else Path(name)
    if not path.is_file():
        recipes = ", ".join(sorted(p.stem for p in FOLDER.glob("*.toml")))
        raise UnknownModel(asked=name, there=f"the recipes {recipes}")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadSetting(name=f"recipe {path.name}", found=str(error), allowed="a TOML file like those in recipes/") from error
    recipe = read(Recipe, data | {"name": path.stem}, f"recipe {path.name}")
    recipe.spec([len(SPECIALS), len(SPECIALS)])  # refuses a bad network now, not only after the corpus was read
    _ = recipe.corpus
    return recipe
