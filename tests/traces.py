"""Traces made of numbers alone, for tests of what draws them: no network, no torch."""

from dataclasses import asdict, replace

import numpy as np

from model.requests.external import ForeignSound
from model.trace.steps import Candidate, Step
from model.trace.types import Array, Attention, Kind, Site, Tokens, Trace

GERMAN = "<sos> zwei junge hunde spielen mit einem ball im schnee . <eos>".split()
ENGLISH = "<sos> two young dogs play with a ball in the snow . <eos>".split()


def strip(name: str, texts: list[str]) -> Tokens:
    """Tokens with made-up ids; whatever stands in <> is special."""
    special = tuple(text.startswith("<") and text.endswith(">") for text in texts)
    return Tokens(name, tuple(range(2, 2 + len(texts))), tuple(texts), special, (False,) * len(texts))


def attention(site: Site, mask: Array, heads: int, rng: np.random.Generator) -> Attention:
    """Weights whose rows sum to 1 over the allowed keys: some heads sharp, some flat."""
    scores = rng.normal(size=(heads, *mask.shape)) * rng.uniform(0.2, 6, size=(heads, 1, 1))
    weights = np.where(mask, np.exp(scores), 0.0)
    weights = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)
    query, key = {"encoder": ("source", "source")}.get(site.stack, ("target", "source" if site.kind == "cross" else "target"))
    causal = np.tril(np.ones(mask.shape, bool)) if key == "target" else None
    return Attention(site, query, key, weights, mask, np.ones_like(mask), causal, scores=scores.astype(np.float32))


def translation(source: list[str] = GERMAN, target: list[str] = ENGLISH, layers: int = 3, heads: int = 8, seed: int = 0) -> Trace:
    """An encoder-decoder's run: every site, every step; the target's last token was written and not read."""
    rng = np.random.default_rng(seed)
    keys, rows = len(source), len(target) - 1
    masks: dict[tuple[str, Kind], Array] = {
        ("encoder", "self"): np.ones((keys, keys), bool),
        ("decoder", "self"): np.tril(np.ones((rows, rows), bool)),
        ("decoder", "cross"): np.ones((rows, keys), bool),
    }
    sites = [Site("encoder", 0, layer, "self") for layer in range(layers)]
    sites += [Site("decoder", 0, layer, kind) for layer in range(layers) for kind in ("self", "cross")]
    steps = []
    for index in range(rows):
        probabilities = np.sort(rng.dirichlet(np.full(6, 0.4)))[::-1][:5]
        candidates = tuple(
            Candidate(100 + rank if rank else index + 3, f"word{rank}" if rank else target[index + 1], float(np.log(p + 1e-9)))
            for rank, p in enumerate(probabilities)
        )
        steps.append(Step(index, candidates[0], candidates, (index, index + 1)))
    return Trace(
        model={
            "name": "made-up",
            "title": "German → English",
            "fingerprint": f"{seed:064x}",
            "languages": {"source": "German", "target": "English"},
            "device": "cpu",
            "milliseconds": 41.0,
        },
        request={"model": "made-up", "source": " ".join(source[1:-1])},
        tokens={"source": strip("source", source), "target": strip("target", target)},
        attention={site: attention(site, masks[site.stack, site.kind], heads, rng) for site in sites},
        positions={
            "encoder": rng.normal(size=(keys, 16)).astype(np.float32),
            "decoder": rng.normal(size=(rows, 16)).astype(np.float32),
        },
        logits=rng.normal(size=(rows, 50)).astype(np.float32),
        steps=tuple(steps),
        missing={"attention/*/q": "not kept: ask for it with --keep qkv"},
    )


def heard(seed: int = 0, heads: int = 4) -> Trace:
    """The run of a network that listened to 1.3 of 2 seconds: tokens look around one moment after the other."""
    rng = np.random.default_rng(seed)
    sound = ForeignSound(positions=100, bands=8, joined=2, hop=160, rate=16_000)
    target = "<sos> <en> <said> and so , my friends , ask <eos>".split()
    full = translation(list(sound.names), target, layers=2, heads=heads, seed=seed)
    silent = (False,) * 65 + (True,) * 35
    source = replace(full.tokens["source"], ids=(), special=silent)
    moments = np.arange(100) * 1.0

    def looking(one: Attention) -> Attention:
        if one.site.kind != "cross":
            return one
        middles = np.linspace(0, 62, one.weights.shape[1])[None, :, None] + rng.normal(0, 2, (heads, 1, 1))
        weights = np.exp(-(((moments - middles) / 4) ** 2)) + 0.01 * rng.random(one.weights.shape)
        return replace(one, weights=(weights / weights.sum(-1, keepdims=True)).astype(np.float32), scores=None)

    texts = tuple(text if text.startswith("<") or text == "," else f" {text}" for text in target)
    return replace(
        full,
        model={**full.model, "spec": {"encoder": {"sound": asdict(sound)}, "alignment": [[0, 1], [1, 2]], "median": 3}},
        tokens={"source": source, "target": replace(full.tokens["target"], texts=texts)},
        attention={site: looking(one) for site, one in full.attention.items()},
        sound=(0.2 * np.sin(np.arange(20_800) / 9)).astype(np.float32),
        spectrogram=rng.normal(size=(8, 200)).astype(np.float32),
    )


def language_model(prompt: int = 4, layers: int = 2, heads: int = 4, seed: int = 0) -> Trace:
    """A causal language model's run: one strip, `prompt` tokens given and the rest written; the last one was not read."""
    full = translation(ENGLISH, ENGLISH, layers, heads, seed)
    found = {
        site: replace(one, query_tokens="source", key_tokens="source")
        for site, one in full.attention.items()
        if site.stack == "decoder" and site.kind == "self"
    }
    written = [step for step in full.steps if step.index >= prompt - 1]
    return replace(
        full,
        tokens={"source": full.tokens["source"]},
        attention=found,
        steps=tuple(
            replace(step, index=i, computed=(0 if i == 0 else step.computed[0], step.computed[1])) for i, step in enumerate(written)
        ),
    )


def encoder_only(layers: int = 2, heads: int = 4) -> Trace:
    """An encoder's run: one strip, no steps."""
    full = translation(layers=layers, heads=heads)
    found = {site: one for site, one in full.attention.items() if site.stack == "encoder"}
    return replace(full, tokens={"source": full.tokens["source"]}, attention=found, steps=(), logits=None)


def encoder(layers: int, heads: int, tokens: int, seed: int = 0) -> Trace:
    """A long input: word by word, the last ninth padding. Each head looks about some distance back, some sharply, some not."""
    rng = np.random.default_rng(seed)
    valid = tokens - tokens // 9
    strips = strip("source", [f"wort{i}" if i < valid else "<pad>" for i in range(tokens)])
    mask = np.broadcast_to(np.arange(tokens) < valid, (tokens, tokens))
    distance = np.arange(tokens)[:, None] - np.arange(tokens)

    def made(site: Site) -> Attention:
        weights = np.empty((heads, tokens, tokens), np.float32)
        for head in weights:
            head[:] = 1 / (1 + ((distance - rng.integers(0, tokens // 2)) / rng.uniform(0.3, 20)) ** 2)
            head *= rng.random((1, tokens), np.float32) ** 4 * mask
            head /= head.sum(axis=-1, keepdims=True)
        return Attention(site, "source", "source", weights, mask, mask)

    return Trace(
        model={"name": "made-up", "title": "An encoder", "fingerprint": f"{seed:064x}", "device": "cpu", "milliseconds": 41.0},
        request={"model": "made-up", "source": f"{layers} × {heads} × {tokens}"},
        tokens={"source": strips},
        attention={site: made(site) for layer in range(layers) if (site := Site("encoder", 0, layer, "self"))},
    )


def twice(layers: int = 2, heads: int = 4) -> Trace:
    """A run whose decoder was passed through two times."""
    full, again = translation(layers=layers, heads=heads), translation(layers=layers, heads=heads, seed=1)
    second = {
        moved: replace(one, site=moved)
        for site, one in again.attention.items()
        if site.stack == "decoder" and (moved := replace(site, pass_=1))
    }
    return replace(full, attention={**full.attention, **second})


def padded(trace: Trace, count: int, wobble: float = 1e-6) -> Trace:
    """The same run with `count` padding tokens behind its source: no weight on them, logits the same but for a `wobble`."""
    source = trace.tokens["source"]
    texts = [*source.texts, *["<pad>"] * count]

    def widened(one: Attention) -> Attention:
        if one.key_tokens != "source":
            return one
        rows = count if one.site.stack == "encoder" else 0
        valid = np.arange(one.weights.shape[2] + count) < one.weights.shape[2]
        mask = np.broadcast_to(valid, (one.weights.shape[1] + rows, len(valid))).copy()
        weights = np.pad(one.weights, ((0, 0), (0, rows), (0, count)))
        weights[:, one.weights.shape[1] :, 0] = 1
        return Attention(one.site, one.query_tokens, one.key_tokens, weights, mask, mask.copy())

    logits = None if trace.logits is None else trace.logits + np.float32(wobble)
    found = {site: widened(one) for site, one in trace.attention.items()}
    return replace(trace, tokens={**trace.tokens, "source": strip("source", texts)}, attention=found, logits=logits)


def at_first(layers: int = 2, heads: int = 4, share: float = 0.8, prompt: int = 4) -> Trace:
    """A language model whose rows have so much of their weight on the first key, on average; row 3 of the last head has all."""
    full, rng = language_model(prompt, layers, heads), np.random.default_rng(1)

    def moved(one: Attention) -> Attention:
        weights = one.weights.astype(np.float64)
        own = np.clip(rng.normal(share, 0.05, size=weights.shape[:2]), 0, 0.99)
        weights[..., 0] = 0
        sums = weights.sum(axis=-1)
        weights *= np.divide(1 - own, sums, out=np.zeros_like(sums), where=sums > 0)[..., None]
        weights[-1, 3] = 0
        weights[..., 0] = 1 - weights.sum(axis=-1)
        return replace(one, weights=weights.astype(np.float32))

    model = {**full.model, "fingerprint": f"{share}"}
    return replace(full, model=model, attention={site: moved(one) for site, one in full.attention.items()})


def of_a_caption(gray: int | None = None) -> Trace:
    """The run of a captioner that wrote five tokens about the image of `of_an_image`."""
    seen = of_an_image(gray=gray)
    written = translation(list(seen.tokens["source"].texts), "<sos> a house under trees <eos>".split(), layers=2, heads=3)
    spec = {**seen.model["spec"], "decoder": {"vocab": 40, "layers": 2}}
    model = {**written.model, "title": "A captioner", "image": seen.model["image"], "spec": spec}
    return replace(written, model=model, request=seen.request, tokens={**written.tokens, **seen.tokens}, image=seen.image)


def of_an_image(layers: int = 2, heads: int = 3, gray: int | None = None, seed: int = 0) -> Trace:
    """The run of a network that read an image of 4 × 5 patches, a class token and a register.

    Args:
        gray: the lightness of all of the image; None: random colors.
    """
    rng, added, side = np.random.default_rng(seed), ("[CLS]", "[REG1]"), 8
    names = (*added, *(f"{row},{column}" for row in range(1, 5) for column in range(1, 6)))
    special = tuple(name in added for name in names)
    own = Tokens("source", (), names, special, (False,) * len(names))
    every = np.ones((len(names), len(names)), bool)
    found = (attention(Site("encoder", 0, layer, "self"), every, heads, rng) for layer in range(layers))
    colors = rng.integers(0, 256, (4 * side, 5 * side, 3), np.uint8)
    cut = {"rows": 4, "columns": 5, "side": side, "channels": 3, "added": list(added)}
    return Trace(
        model={
            "name": "made-up",
            "title": "A reader of images",
            "fingerprint": f"{seed:064x}",
            "device": "cpu",
            "milliseconds": 41.0,
            "spec": {"encoder": {"image": cut, "vocab": 0, "layers": layers}, "decoder": None},
            "image": {"name": "cat.png", "width": 70, "height": 50},
        },
        request={"model": "made-up", "source": "image-0123456789abcdef"},
        tokens={"source": own},
        attention={one.site: one for one in found},
        image=colors if gray is None else np.full_like(colors, gray),
    )
