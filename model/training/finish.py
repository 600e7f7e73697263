"""The last act of a training: the phases' best weights mixed, and two numbers of the output layer fitted to the validation data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from model.errors import BadSetting
from model.training.data import PAD_ID, Pair, batches


def mix(files: Sequence[Path], shares: Sequence[float]) -> dict[str, Tensor]:
    """The weighted mean of several files' weights, float32. Weights of one training lie close enough for their mean to be better.

    Args:
        shares: of each file; they sum to 1.

    Source: Wortsman et al. 2022, "Model soups", section 2.
    """
    mixed: dict[str, Tensor] = {}
    for file, share in zip(files, shares, strict=True):
        if share:
            for name, value in load_file(file).items():
                mixed[name] = mixed.get(name, torch.zeros(())) + share * value.float()
    return mixed


def calibrate(
    network: nn.Module, weights: Mapping[str, Tensor], pairs: Sequence[Pair], unk_id: int, device: torch.device
) -> dict[str, Tensor]:
    """Weights that are as sure as they are right: logits are shifted for the unknown word, then divided by a temperature.

    Both numbers are fitted to `pairs` and written into the output layer, so the network stays what its spec says. The order of all
    known words stays as it was. Unknown words are rarer in training than anywhere else, since rare words of the training data
    are known.

    Args:
        network: of the shape of `weights`; left with other weights than before.
        weights: of a network whose output layer has a bias and a weight of its own.

    Raises:
        BadSetting: the output layer has no bias.

    Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", section 4.2, for the temperature.
    """
    if "output.bias" not in weights:
        raise BadSetting(name="calibrate", found=True, allowed="false where the output layer has no bias")
    network.load_state_dict(dict(weights))
    logits, targets = _predictions(network, pairs, device)
    fitted = torch.zeros(2, requires_grad=True)  # shift of the unknown word, logarithm of the temperature
    optimizer = torch.optim.LBFGS([fitted], max_iter=20, line_search_fn="strong_wolfe")
    unknown = nn.functional.one_hot(torch.tensor(unk_id), logits.shape[1]).float()

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy((logits + fitted[0] * unknown) / fitted[1].exp(), targets)
        value.backward()
        return value

    optimizer.step(loss)
    shift, temperature = fitted[0].item(), fitted[1].exp().item()
    calibrated = dict(weights)
    calibrated["output.weight"] = weights["output.weight"] / temperature
    calibrated["output.bias"] = (weights["output.bias"] + shift * unknown.to(weights["output.bias"])) / temperature
    return calibrated


def _predictions(network: nn.Module, pairs: Sequence[Pair], device: torch.device) -> tuple[Tensor, Tensor]:
    """Logits [prediction, vocab] and the tokens that they should have predicted [prediction], on the CPU."""
    network.eval()
    logits, targets = [], []
    with torch.inference_mode():
        for batch in batches(pairs, 128):
            on = batch.to(device)
            following = on.target[:, 1:]
            real = following != PAD_ID
            logits.append(network(on.source, on.target[:, :-1])[real].float().cpu())
            targets.append(following[real].cpu())
    return torch.cat(logits).clone(), torch.cat(targets).clone()
