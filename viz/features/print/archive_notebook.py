"""The notebook in the archive of a run: opens the trace with safetensors alone and draws it. Format: nbformat 4.5."""

import json
from collections.abc import Collection
from typing import Any

from model.trace.trace_files import ARCHIVE
from model.trace.types import Site, Trace
from viz.labels import tokens

_READ = '''import json

import numpy as np
from safetensors import safe_open

with safe_open({file}, framework="numpy") as file:
    header = json.loads(file.metadata()["headlight"])
    arrays = {{name: file.get_tensor(name) for name in file.keys()}}


def weights_of(site):
    """Weights [head, query, key] of a site; of a long run they are computed from its queries and keys."""
    if (found := arrays.get(f"attention/{{site}}/weights")) is not None:
        return found
    made = header["unwritten"][site]
    scores = arrays[f"attention/{{site}}/q"] @ arrays[f"attention/{{site}}/k"].swapaxes(1, 2) * made["scale"]
    scores = np.where(arrays[f"attention/{{site}}/mask"], scores, np.finfo(np.float32).min)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return weights if made["empty_rows"] == "uniform" else weights * arrays[f"attention/{{site}}/mask"]


for site, (queries, keys) in header["sites"].items():
    print(site, weights_of(site).shape, f"{{queries}} attends to {{keys}}")'''

_HEAD = """import matplotlib.pyplot as plt

site, head = {site}, {head}  # the head counts from 0
weights = weights_of(site)[head]
queries, keys = (header["tokens"][name]["texts"][:size] for name, size in zip(header["sites"][site], weights.shape))

figure, axes = plt.subplots(figsize=(1.5 + 0.35 * len(keys), 1.5 + 0.35 * len(queries)))
picture = axes.imshow(weights, cmap="Oranges", vmin=0, vmax=1)
axes.set_xticks(range(len(keys)), keys, rotation=90)
axes.set_yticks(range(len(queries)), queries)
query_strip, key_strip = header["sites"][site]
axes.set(xlabel=f"key: {{key_strip}}", ylabel=f"query: {{query_strip}}", title=f"{{site}}, head {{head + 1}}")
figure.colorbar(picture, label="weight")
plt.show()"""

_SITE = """found = weights_of(site)
figure, all_axes = plt.subplots(1, len(found), figsize=(2.2 * len(found), 2.6), squeeze=False)
for number, (axes, one) in enumerate(zip(all_axes[0], found), start=1):
    axes.imshow(one, cmap="Oranges", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[], title=f"head {number}")
plt.show()"""

_OVERVIEW = """import html
from pathlib import Path

from IPython.display import HTML, display

try:
    from headlight import show  # pip install headlight-attention

    display(show({file}, site=site, head=head))
except ImportError:  # the page that was saved with the run
    page = html.escape(Path("figures/overview.html").read_text(encoding="utf-8"), quote=True)
    display(HTML(f'<iframe style="width: 100%; height: 720px; border: 0" srcdoc="{{page}}"></iframe>'))"""


_WHY = """with open("sums/why.json", encoding="utf-8") as file:
    why = json.load(file)
matrix = np.array(why["matrix"], float)  # part of the query × part of the key; NaN where a number was none
print(f"{why['site']}, head {why['head'] + 1}, query {why['query'] + 1}, key {why['key'] + 1}")
print("sum of all parts", matrix.sum() + why["distance"], "recorded", why["recorded"])

rows, columns = (np.argsort(-np.abs(matrix).sum(axis))[:8] for axis in (1, 0))
shown = matrix[np.ix_(rows, columns)]
figure, axes = plt.subplots(figsize=(3 + 0.6 * len(columns), 2 + 0.4 * len(rows)))
most = np.abs(shown).max()
picture = axes.imshow(shown, cmap="PuOr_r", vmin=-most, vmax=most)
axes.set_xticks(range(len(columns)), [why["parts_key"][place]["text"] for place in columns], rotation=90)
axes.set_yticks(range(len(rows)), [why["parts_query"][place]["text"] for place in rows])
axes.set(xlabel="part of the key", ylabel="part of the query", title="what two parts add to the score")
figure.colorbar(picture)
plt.show()"""

_WRITES = """with open("sums/writes.json", encoding="utf-8") as file:
    writes = json.load(file)
values = np.array([part["value"] for part in writes["parts"]], float)
print("sum of all parts", values.sum(), "recorded", writes["recorded"])

largest = np.argsort(-np.abs(values))[:12][::-1]
figure, axes = plt.subplots(figsize=(7, 4))
axes.barh([writes["parts"][place]["text"] for place in largest], values[largest])
axes.set(xlabel="added to the logit" + (", minus that of the other token" if writes["minus"] is not None else ""))
plt.show()"""

_SUMS = {
    "why": ("Why this score: what wrote the query, times what wrote the key. It adds up to what the run recorded.", _WHY),
    "writes": ("Why this token: what each part added to its logit. It adds up to what the run recorded.", _WRITES),
}
"""What the notebook says of each sum of the archive, and draws of it."""


def notebook(trace: Trace, site: Site, head: int, link: str, sums: Collection[str] = ()) -> dict[str, Any]:
    """The notebook as JSON values. Texts of the run are in code only as quoted strings.

    Args:
        trace: the run.
        site, head: what it shows first; the head counts from 0.
        link: address that shows the run again; may be empty.
        sums: which sums the archive has, `why` and `writes`.
    """
    gaps = {"file": json.dumps(ARCHIVE), "site": json.dumps(str(site)), "head": str(head)}
    texts = [f"{name}: `{_plain(' '.join(strip.texts))}`" for name, strip in trace.tokens.items()]  # as code: no token is markup
    cells = [
        _words("# " + _plain(tokens.model(trace)), *texts, f"`{link}`" if link else ""),
        _code(_READ.format(**gaps)),
        _code(_HEAD.format(**gaps)),
        _code(_SITE),
        _words("All heads, to be pointed at:"),
        _code(_OVERVIEW.format(**gaps)),
    ]
    for name in sorted(sums):
        about, code = _SUMS[name]
        cells += [_words(about), _code(code)]
    return {
        "cells": [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _plain(text: str) -> str:
    """Text on one line that Markdown and HTML leave alone inside backticks and headings."""
    return " ".join(text.replace("`", "'").replace("<", "‹").replace(">", "›").split())


def _words(*paragraphs: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": "\n\n".join(filter(None, paragraphs))}


def _code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
