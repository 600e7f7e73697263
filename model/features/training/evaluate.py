"""Evaluation on one split of a corpus: perplexity under teacher forcing, and the quality of decoded targets."""

from collections.abc import Iterator, Sequence
from math import exp
from pathlib import Path

import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from tqdm import tqdm

from model.checkpoints.loader import Runner
from model.checkpoints.native import Checkpoint
from model.errors import BadSetting
from model.features.training import corpora
from model.features.training.corpora import Reversal, Texts
from model.features.training.data import examples, validation_loss
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.tokenizers.words import WordTokenizer, split_words


def evaluate(checkpoint: Runner, data: Path | None, split: str, decoding: Decoding, device: torch.device) -> dict[str, float]:
    """Scores of a checkpoint of our own on one split. Sources are decoded in the same way as in the app.

    Args:
        data: folder of the corpus that the checkpoint's spec.json describes; None where its task needs no files.

    Returns:
        `loss`: mean cross entropy in nats per target token, end tokens included, without padding and label smoothing; `ppl`: its
        exponential; `parameters`: number of parameters. Where there is a target also `accuracy`, the share of targets that are
        exactly right, if only one target is right; otherwise `bleu` and `chrf`, from 0 to 100.

    Raises:
        DataError: the corpus is missing or does not fit.
        BadSetting: the checkpoint is not one of our own, or its corpus has no such split.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise BadSetting(name="checkpoint", found=checkpoint.info.title, allowed="one that was trained here: it names its corpus")
    corpus = corpora.from_json(checkpoint.info.data, "the checkpoint's data")
    tokenizers = {name: t for name, t in checkpoint.tokenizers.items() if isinstance(t, WordTokenizer)}
    if not tokenizers:
        raise BadSetting(name="checkpoint", found="another kind", allowed="a folder of our own, to be evaluated on its corpus")
    texts = corpus.texts(data, split)
    loss = validation_loss(checkpoint.network, examples(corpus, texts, tokenizers), device)
    scores = {"loss": loss, "ppl": exp(loss), "parameters": checkpoint.parameters}
    if "target" not in tokenizers:
        return scores
    target = tokenizers["target"]
    written = [target.text(ids) for ids in _decode(checkpoint, texts, split, decoding, device)]
    references = [target.joined(split_words(text, target.split)) for _, text in texts]
    if isinstance(corpus, Reversal):
        return scores | {"accuracy": sum(map(str.__eq__, written, references)) / len(written)}
    return scores | translation_scores(written, references, target)


def translation_scores(written: Sequence[str], references: Sequence[str], target: WordTokenizer) -> dict[str, float]:
    """Corpus BLEU on the target tokenizer's words (on sacrebleu's Chinese tokens for characters, `tokenize="zh"`), and chrF2."""
    bleu = BLEU(tokenize="zh" if target.split == "characters" else "none", force=True)
    return {name: metric.corpus_score(written, [references]).score for name, metric in (("bleu", bleu), ("chrf", CHRF()))}


def _decode(checkpoint: Checkpoint, texts: Texts, split: str, decoding: Decoding, device: torch.device) -> Iterator[Sequence[int]]:
    """The target ids that the network decodes for each source."""
    for text, _ in tqdm(texts, desc=f"decoding {split} ({decoding.method})", unit="sentence"):
        trace = run(checkpoint, RunRequest(checkpoint.info.name, text, decoding=decoding), device, str(device))
        yield trace.tokens["target"].ids
