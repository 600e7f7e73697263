"""Recipes: small readable files that say how a checkpoint of this project is trained. One TOML file each, in recipes/."""

import tomllib
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from model.checked import Between, read
from model.checkpoints import Info
from model.errors import BadSetting, UnknownModel
from model.spec import ModelSpec, Share, from_json
from model.tokenizers import SPECIALS, Split

Count: TypeAlias = Annotated[int, Between(1, 10**9)]
Rate: TypeAlias = Annotated[float, Between(0.0, 10.0)]

FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class Side:
    """Source or target: its language, its file ("{split}.de"), how its text is split, how often a word must occur to be known."""

    language: str
    file: str
    split: Split
    min_freq: Count


@dataclass(frozen=True)
class Splits:
    """Names of the two parts of the corpus: for `Side.file`'s gap."""

    train: str
    validation: str


@dataclass(frozen=True)
class Phase:
    """A stretch of training with settings of its own; the learning rate goes from the first value to the second in a straight line.

    Attributes:
        epochs: passes over the training data.
        learning_rates: of AdamW, at the phase's beginning and at its end.
        label_smoothing: share of the target probability spread over the vocabulary.
        dropout: share of values dropped, everywhere alike.
    """

    epochs: Count
    learning_rates: tuple[Rate, ...]
    label_smoothing: Share
    dropout: Share

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
        shares: of each phase's best weights in the mean that is kept at the end; empty: the best of all phases is kept.
        calibrate: at the end, fit three numbers of the output layer to the validation data (model/training/finish.py).
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
    """One recipe, checked. `encoder` and `decoder` are StackSpecs without `vocab`, which the data decides."""

    name: str
    title: str
    summary: str
    examples: tuple[str, ...]
    source: Side
    target: Side
    splits: Splits
    encoder: dict[str, Any]
    decoder: dict[str, Any]
    optimisation: Optimisation

    def spec(self, source_vocab: int, target_vocab: int) -> ModelSpec:
        """The network for vocabularies of these sizes. `<unk>`, `<pad>` and `<sos>` are never written."""
        return from_json(
            {
                "encoder": {**self.encoder, "vocab": source_vocab},
                "decoder": {**self.decoder, "vocab": target_vocab},
                "dropout": self.optimisation.phases[-1].dropout,
                "suppressed": [0, 1, 2],
            }
        )

    def info(self, source_vocab: int, target_vocab: int) -> Info:
        """What spec.json of the trained checkpoint says."""
        return Info(
            name=self.name,
            title=self.title,
            summary=self.summary,
            languages={"source": self.source.language, "target": self.target.language},
            examples=self.examples,
            data={"source": self.source.file, "target": self.target.file},
            spec=self.spec(source_vocab, target_vocab),
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
    recipe.spec(len(SPECIALS), len(SPECIALS))  # a bad network is refused now, not after the corpus was read
    return recipe
