"""Training: one network, one recipe, one folder. Can be killed at any moment and goes on from its last whole epoch."""

import csv
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from model import checkpoints
from model.errors import DamagedFile
from model.tokenizers import SPECIALS, UNKNOWN, WordTokenizer, learn_vocabulary
from model.training.data import PAD_ID, Batch, Pair, batches, encode, read_parallel
from model.training.finish import calibrate, mix
from model.training.recipes import Optimisation, Recipe
from model.transformer.build import build

COLUMNS = ("epoch", "step", "train_loss", "validation_loss", "validation_ppl", "learning_rate", "tokens_per_second", "seconds")
"""Columns of curve.csv: losses in nats a target token (training with label smoothing and dropout, validation with neither)."""


@dataclass
class State:
    """Everything that a resumed training needs."""

    network: nn.Module
    average: AveragedModel
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    epoch: int = 0
    best: float = math.inf
    best_epoch: int = 0
    phase_best: dict[int, float] = field(default_factory=dict)


def train(recipe: Recipe, data: Path, out: Path, device: torch.device) -> Path:
    """Trains `recipe` on `data` and leaves a checkpoint folder at `out`, with the best-validation weights in it.

    Beside the checkpoint stand `last.safetensors` (the weights of the last epoch), `curve.csv`, and while it runs `state.pt`.

    Raises:
        DataError: the corpus is not there or does not fit.
        DamagedFile: `out` holds the state of another training.
    """
    pairs = read_parallel(data, recipe.splits.train, recipe.source.file, recipe.target.file)
    source = learn_vocabulary((s for s, _ in pairs), recipe.source.split, recipe.source.min_freq)
    target = learn_vocabulary((t for _, t in pairs), recipe.target.split, recipe.target.min_freq)
    training = encode(pairs, source, target)
    validation = encode(read_parallel(data, recipe.splits.validation, recipe.source.file, recipe.target.file), source, target)

    how = recipe.optimisation
    torch.manual_seed(how.seed)
    state = _state(build(recipe.spec(source.size, target.size)), how, math.ceil(len(training) / how.sentences_per_batch), device)
    out.mkdir(parents=True, exist_ok=True)
    _resume(state, out / "state.pt", device)
    while state.epoch < how.epochs and state.epoch - state.best_epoch < how.patience:
        _epoch(state, recipe, training, validation, (source, target), out, device)
    _finish(state, recipe, training, validation, (source, target), out, device)
    return out


def validation_loss(network: nn.Module, pairs: list[Pair], device: torch.device, size: int = 128) -> float:
    """Mean cross entropy in nats over all target tokens but start and padding, the end token counted; no smoothing, no dropout."""
    network.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches(pairs, size):
            on = batch.to(device)
            total += float(_cross_entropy(network(on.source, on.target[:, :-1]), on, 0.0)) * batch.predicted
            count += batch.predicted
    return total / count


def _state(network: nn.Module, how: Optimisation, steps_per_epoch: int, device: torch.device) -> State:
    network.to(device)
    matrices = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": how.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(how.average))
    return State(
        network,
        average,
        optimizer,
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: how.learning_rate(step, steps_per_epoch)),
    )


def _epoch(
    state: State,
    recipe: Recipe,
    training: list[Pair],
    validation: list[Pair],
    tokenizers: tuple[WordTokenizer, WordTokenizer],
    out: Path,
    device: torch.device,
) -> None:
    """One pass over the training data, its validation, and everything written that a kill must not lose."""
    how = recipe.optimisation
    for module in state.network.modules():
        if isinstance(module, nn.Dropout):
            module.p = how.phase(state.epoch).dropout
    began, tokens, total = time.perf_counter(), 0, 0.0
    bar = tqdm(
        _progress_batches(training, how, state.epoch),
        total=math.ceil(len(training) / how.sentences_per_batch),
        desc=f"epoch {state.epoch + 1}/{how.epochs}",
        mininterval=1.0,
    )
    for batch in bar:
        loss = _step(state, batch.to(device), how, device)
        tokens += batch.predicted
        total += loss * batch.predicted
        rate = tokens / (time.perf_counter() - began)
        bar.set_postfix_str(
            f"loss {total / tokens:.3f}, perplexity {math.exp(total / tokens):.2f}, {rate:,.0f} tokens/s", refresh=False
        )
    seconds = time.perf_counter() - began

    state.epoch += 1
    loss = validation_loss(state.average, validation, device)
    weights = _weights(state)
    checkpoints.save_weights(out / "last.safetensors", weights)
    number = how.number(state.epoch - 1)
    if loss < state.phase_best.get(number, math.inf):
        state.phase_best[number] = loss
        checkpoints.save_weights(out / f"phase-{number + 1}.safetensors", weights)
    if loss < state.best:
        state.best, state.best_epoch = loss, state.epoch
        checkpoints.save(out, recipe.info(tokenizers[0].size, tokenizers[1].size), weights, *tokenizers)
    rate = float(state.schedule.get_last_lr()[0])
    row = (
        state.epoch,
        state.schedule.last_epoch,
        total / tokens,
        loss,
        math.exp(loss),
        rate,
        round(tokens / seconds),
        round(seconds, 1),
    )
    _log(out / "curve.csv", row)
    _save_state(state, out / "state.pt")
    tqdm.write(f"epoch {state.epoch}: validation loss {loss:.4f}, perplexity {math.exp(loss):.3f} (best: epoch {state.best_epoch})")


def _finish(
    state: State,
    recipe: Recipe,
    training: list[Pair],
    validation: list[Pair],
    tokenizers: tuple[WordTokenizer, WordTokenizer],
    out: Path,
    device: torch.device,
) -> None:
    """Mixes the phases' best weights and calibrates them, where the recipe says so, in place of the best of one epoch."""
    how = recipe.optimisation
    weights = load_file(out / checkpoints.WEIGHTS)
    if how.shares:
        weights = mix([out / f"phase-{n}.safetensors" for n in range(1, len(how.phases) + 1)], how.shares)
    if how.calibrate:
        network = state.average.module
        assert isinstance(network, nn.Module)
        weights = {name: value.float() for name, value in weights.items()}
        weights = calibrate(network, weights, training, validation, SPECIALS.index(UNKNOWN), device)
    if how.shares or how.calibrate:
        checkpoints.save(out, recipe.info(tokenizers[0].size, tokenizers[1].size), weights, *tokenizers)


def _progress_batches(training: list[Pair], how: Optimisation, epoch: int) -> Iterator[Batch]:
    """The batches of one epoch: another order each time, the same after a resume."""
    torch.manual_seed(how.seed + epoch)
    return batches(training, how.sentences_per_batch, seed=how.seed + epoch)


def _step(state: State, batch: Batch, how: Optimisation, device: torch.device) -> float:
    """One update of the weights. Returns the loss in nats a token."""
    state.network.train()
    with torch.autocast(device.type, torch.bfloat16, enabled=how.precision == "bfloat16"):
        logits = state.network(batch.source, batch.target[:, :-1])
        loss = _cross_entropy(logits, batch, how.phase(state.epoch).label_smoothing)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(state.network.parameters(), how.gradient_norm)
    state.optimizer.step()
    state.schedule.step()
    state.average.update_parameters(state.network)
    return loss.item()


def _cross_entropy(logits: Tensor, batch: Batch, smoothing: float) -> Tensor:
    """Mean over the predicted tokens of `logits` [batch, position, vocab]."""
    return nn.functional.cross_entropy(
        logits.float().flatten(0, 1), batch.target[:, 1:].flatten(), ignore_index=PAD_ID, label_smoothing=smoothing
    )


def _weights(state: State) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in state.average.module.state_dict().items()}


def _log(path: Path, row: tuple[int, *tuple[float, ...]]) -> None:
    """Adds one epoch's row, in place of rows that a kill between this and `_save_state`, or an older training, left behind."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    before = {str(epoch) for epoch in range(1, row[0])}
    kept = [earlier for earlier in csv.reader(lines) if earlier and earlier[0] in before]
    fresh = path.with_suffix(".part")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *kept, row])
    fresh.replace(path)


def _save_state(state: State, path: Path) -> None:
    parts = {name: getattr(state, name).state_dict() for name in ("network", "average", "optimizer", "schedule")}
    progress = {"epoch": state.epoch, "best": state.best, "best_epoch": state.best_epoch, "phase_best": state.phase_best}
    fresh = path.with_suffix(".part")
    torch.save({**parts, **progress}, fresh)
    fresh.replace(path)


def _resume(state: State, path: Path, device: torch.device) -> None:
    if not path.exists():
        return
    try:
        saved = torch.load(path, map_location=device, weights_only=True)
        for name in ("network", "average", "optimizer", "schedule"):
            getattr(state, name).load_state_dict(saved[name])
        state.epoch, state.best, state.best_epoch = saved["epoch"], saved["best"], saved["best_epoch"]
        state.phase_best = saved["phase_best"]
    except (UnpicklingError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, ValueError, OSError) as error:
        raise DamagedFile(path=path, detail=f"it is no state of this training: {error}") from error
