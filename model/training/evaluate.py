"""Evaluation: perplexity under teacher forcing, and BLEU of what the network writes, on one split of a corpus."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from pathlib import Path

import torch
from sacrebleu.metrics.bleu import BLEU
from tqdm import tqdm

from model.checkpoints import Checkpoint
from model.engine.base import Decoding, RunRequest
from model.errors import BadSetting
from model.running import run
from model.tokenizers import Tokenizer, WordTokenizer, split_words
from model.training.data import encode, read_parallel
from model.training.train import validation_loss


@dataclass(frozen=True)
class Scores:
    """What evaluation measured.

    Attributes:
        loss: mean cross entropy in nats over the target tokens without padding, the end token counted, no smoothing.
        ppl: its exponential.
        bleu: corpus BLEU from 0 to 100 over the tokenizer's words, as sacrebleu computes it with `tokenize="none"`.
        parameters: learned numbers of the network.
    """

    loss: float
    ppl: float
    bleu: float
    parameters: int


def evaluate(checkpoint: Checkpoint, data: Path, split: str, decoding: Decoding, device: torch.device) -> Scores:
    """Scores of a translating checkpoint on one split, each sentence decoded as the app decodes it.

    Args:
        data: folder with the files that the checkpoint's spec.json names.

    Raises:
        DataError: the corpus is missing or does not fit.
        BadSetting: the checkpoint does not translate.
    """
    source, target = (_tokenizer(checkpoint.tokenizers, strip) for strip in ("source", "target"))
    texts = read_parallel(data, split, checkpoint.info.data["source"], checkpoint.info.data["target"])
    loss = validation_loss(checkpoint.network, encode(texts, source, target), device)
    written = []
    for text, _ in tqdm(texts, desc=f"decoding {split} ({decoding.method})", unit="sentence"):
        trace = run(checkpoint, RunRequest(checkpoint.info.name, text, decoding=decoding), device, str(device))
        written.append(target.text(trace.tokens["target"].ids))
    references = [" ".join(split_words(text, target.split)) for _, text in texts]
    bleu = BLEU(tokenize="none", force=True).corpus_score(written, [references]).score
    return Scores(loss, exp(loss), bleu, sum(p.numel() for p in checkpoint.network.parameters()))


def _tokenizer(tokenizers: Mapping[str, Tokenizer], strip: str) -> WordTokenizer:
    tokenizer = tokenizers.get(strip)
    if not isinstance(tokenizer, WordTokenizer):
        raise BadSetting(
            name="checkpoint", found="another kind", allowed="a translating folder of our own, to be evaluated on a parallel corpus"
        )
    return tokenizer
