"""Help of every panel: its title, two sentences, and a link to a page of docs/, which a route of the app serves."""

import re
from functools import cache
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.feature import features
from viz.i18n.translate import N_, _, translated

CLOSES = (Path(__file__).parent / "panel_help.js").read_text(encoding="utf-8")
"""Script of a page with panels: closes a help when something else is pressed."""

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "/headlight/docs"


@cache
def texts() -> dict[str, tuple[str, str, str]]:
    """By panel of the core or of a feature: its title, two sentences, and a page of docs/; in English, for `translated`."""
    help_texts = dict(HELP)
    for feature in features():
        help_texts |= feature.help
    return help_texts


def html(name: str) -> str:
    """A button "?" that unfolds the help of a panel, as HTML; empty for a panel without help."""
    if name not in texts():
        return ""
    *words, page = texts()[name]
    title, sentences = map(translated, words)
    more = escape(_("More in the documentation"))
    link = f'<a href="{ADDRESS}/{page}" target="_blank">{more}</a>'
    label = escape(_("What does “{panel}” show?", panel=title))
    return f'<details class="help"><summary aria-label="?: {label}">?</summary><div>{escape(sentences)} {link}</div></details>'


def pages() -> frozenset[str]:
    """The pages of docs/ that panels link to; a link may lead to a heading of one."""
    return frozenset(page.partition("#")[0] for _title, _sentences, page in texts().values())


def _serve(request: Request) -> Response:
    """One page of the documentation, as text."""
    name = request.path_params["name"]
    path = DOCS / name
    if not re.fullmatch(r"[a-z-]+\.md", name) or not path.is_file():
        return Response(status_code=404)
    return Response(path.read_text(encoding="utf-8"), media_type="text/plain")


ROUTE = Route(f"{ADDRESS}/{{name}}", _serve)
"""For `st.App(routes=…)`."""


HELP: dict[str, tuple[str, str, str]] = {
    # Explore
    "overview": (
        N_("All heads"),
        N_(
            "Each small map is one attention head: rows attend, columns are attended to. Click or tap a map to see that head below."
        ),
        "glossary.md",
    ),
    "next": (
        N_("What comes next"),
        N_(
            "Each bar is the softmax of the logits of this run divided by the temperature; top k and top p keep the most "
            "likely tokens. A click or tap on a token continues the text with it."
        ),
        "glossary.md",
    ),
    "sound": (
        N_("The sound"),
        N_(
            "The spectrogram is what the network read; below it, each row is a token that it wrote, each column a moment. The "
            "words stand where dynamic time warping puts them."
        ),
        "sound.md",
    ),
    "heat": (
        N_("The selected head"),
        N_("Each row shows how one token spreads its attention. Click or tap a cell to see how its weight was calculated."),
        "readings.md",
    ),
    "lines": (
        N_("Lines"),
        N_(
            "The same weights as lines: the wider a line, the larger its weight. Hover over a token or tap it to isolate its lines."
        ),
        "glossary.md",
    ),
    "image": (
        N_("On the image"),
        N_(
            "The weights from one token to the patches, or from the patches to it, as a color over the image. Click or tap a patch "
            "to see what it attends to; tokens without a patch (a class token, registers, generated words) stand above it."
        ),
        "images.md",
    ),
    "facts": (
        N_("Statistics of the head"),
        N_("Each number summarizes the weights of the selected head in this run. Click or tap a number to read what it means."),
        "readings.md",
    ),
    # Step through
    "search": (
        N_("The beam search"),
        N_("Each column is a step, each box a hypothesis with its log-probability. Choose a finished one to see its attention."),
        "glossary.md",
    ),
    "player": (
        N_("Token by token"),
        N_("Each step reads one token and generates the next; its row of weights appears. Play it, or use the arrow keys."),
        "glossary.md",
    ),
    "network": (
        N_("Inside the network"),
        N_(
            "One token moves through the network, with the numbers of this run; the map beside it has a bar for each stage. "
            "Choose a shape or a bar to see its formula, its numbers and its code."
        ),
        "stages.md",
    ),
    "stage": (
        N_("A stage"),
        N_("The formula, the numbers of this run, and the line of code that computed them. Nothing is recomputed for this."),
        "stages.md",
    ),
    "arithmetic": (
        N_("How this weight was calculated"),
        N_("Follows one weight from query and key to the softmax. The weight is recomputed in float64 and compared with the run."),
        "stages.md",
    ),
    # Masks and Positions
    "mask-causal": (
        N_("Causal mask"),
        N_("A cell shows whether its row may attend to its column. Masked cells lie in the future of their row."),
        "glossary.md",
    ),
    "mask-both": (
        N_("Both masks"),
        N_("This is the mask that the layer used. A key is allowed only if the causal and the padding mask both allow it."),
        "glossary.md",
    ),
    "mask-padding": (
        N_("Padding mask"),
        N_(
            "Padding makes sentences equally long, so that they can be computed together. This mask makes sure "
            "that nothing attends to it."
        ),
        "glossary.md",
    ),
    "padding-effect": (
        N_("Does padding change the output?"),
        N_("The sentence runs twice, with and without padding, and both runs are compared. They should agree."),
        "glossary.md",
    ),
    "introduction": (
        N_("Positional encoding"),
        N_("Attention alone does not know the order of tokens. Therefore, a vector for each position is added to its embedding."),
        "glossary.md",
    ),
    "table": (
        N_("All values"),
        N_("Each row is the vector of one position. Similar colors in neighboring rows mean similar vectors."),
        "glossary.md",
    ),
    "curves": (
        N_("Curves"),
        N_("Each curve follows one dimension over the positions. Sinusoids of different wavelengths distinguish near from far."),
        "glossary.md",
    ),
    "alike": (
        N_("Similarity between positions"),
        N_("Each cell compares the vectors of two positions. A bright diagonal band means that neighbors are similar."),
        "glossary.md",
    ),
    "formula": (
        N_("The formula"),
        N_("It gives each position its vector without any training. Each pair of dimensions is a wave of its own length."),
        "glossary.md",
    ),
    "rotary": (
        N_("Rotary positions"),
        N_("Two columns are a point in a plane. Each position rotates it further, by an angle of its own for each pair."),
        "readings.md",
    ),
    "rotary-score": (
        N_("The score at other distances"),
        N_("The same query and key, as if the key were elsewhere. No distance is masked; some fit better."),
        "readings.md",
    ),
    "rotary-waves": (
        N_("Wavelength of each pair"),
        N_("After this many positions a pair points the same way again. Pairs far above the line hardly rotate in your text."),
        "readings.md",
    ),
    "biases": (
        N_("Numbers added to the scores"),
        N_("Each curve is a head. A head whose curve is high near 0 attends to neighbors."),
        "readings.md",
    ),
    # Checkpoint
    "diagnosis": (
        N_("What the file is"),
        N_("The names and shapes of the tensors show which program wrote the file. The evidence for and against is listed."),
        "add-a-layout.md",
    ),
    "roles": (
        N_("Assign roles"),
        N_("A layout says what each tensor of a file is. It is checked against the shapes before anything runs."),
        "add-a-layout.md",
    ),
    "recorded-run": (
        N_("A recorded run"),
        N_(
            "The contents of the trace file: the program that ran and each of its attention layers. The numbers "
            "are shown unchanged."
        ),
        "record.md",
    ),
    "numbers": (
        N_("Diagnosis"),
        N_("Shows whether the weights look trained, and which heads are dead or duplicates. Nothing is run for this."),
        "glossary.md",
    ),
    "weights": (
        N_("Weights of a head"),
        N_("The learned matrices of one head, as they are in the file. They are the same for every sentence."),
        "glossary.md",
    ),
    "tensors": (
        N_("Tensors"),
        N_("Every tensor of the file with its statistics. Search the table, or sort it by a column."),
        "glossary.md",
    ),
}
"""By panel: its title, two sentences, and a page of docs/; in English, for `translated`."""
