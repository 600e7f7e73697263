"""Help of every panel: what it shows, in two sentences, with a link to a page of docs/, which a route of the app serves."""

import re
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from viz.i18n.translate import _

CLOSES = (Path(__file__).parent / "panel_help.js").read_text(encoding="utf-8")
"""Script of a page with panels: closes a help when something else is pressed."""

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "/headlight/docs"


def html(name: str) -> str:
    """A button "?" that unfolds the help of a panel, as HTML; empty for a panel without help."""
    found = _help().get(name)
    if found is None:
        return ""
    title, sentences, page = found
    more = escape(_("More in the documentation"))
    link = f'<a href="{ADDRESS}/{page}" target="_blank">{more}</a>'
    label = escape(_("What does “{panel}” show?", panel=title))
    return f'<details class="help"><summary aria-label="?: {label}">?</summary><div>{escape(sentences)} {link}</div></details>'


def pages() -> frozenset[str]:
    """The pages of docs/ that panels link to."""
    return frozenset(page for _title, _sentences, page in _help().values())


def _serve(request: Request) -> Response:
    """One page of the documentation, as text."""
    name = request.path_params["name"]
    path = DOCS / name
    if not re.fullmatch(r"[a-z-]+\.md", name) or not path.is_file():
        return Response(status_code=404)
    return Response(path.read_text(encoding="utf-8"), media_type="text/plain")


ROUTE = Route(f"{ADDRESS}/{{name}}", _serve)
"""For `st.App(routes=…)`."""


def _help() -> dict[str, tuple[str, str, str]]:
    """By panel: its title, two sentences, and a page of docs/."""
    return (
        _of_explore() | _of_step() | _of_masks_and_positions() | _of_training() | _of_compare() | _of_what_if() | _of_checkpoint()
    )


def _of_explore() -> dict[str, tuple[str, str, str]]:
    return {
        "overview": (
            _("All heads"),
            _("Each small map is one attention head: rows attend, columns are attended to. Click a map to see that head below."),
            "glossary.md",
        ),
        "heat": (
            _("The selected head"),
            _("Each row shows how one token spreads its attention. Click a cell to see how its weight was calculated."),
            "readings.md",
        ),
        "lines": (
            _("Lines"),
            _(
                "The same weights as lines: the wider a line, the larger its weight. Hover over a token or tap it to "
                "isolate its lines."
            ),
            "glossary.md",
        ),
        "facts": (
            _("Statistics of the head"),
            _("Each number summarizes the weights of the selected head in this run. Click a number to read what it means."),
            "readings.md",
        ),
    }


def _of_step() -> dict[str, tuple[str, str, str]]:
    return {
        "search": (
            _("The beam search"),
            _("Each column is a step, each box a hypothesis with its log-probability. Choose a finished one to see its attention."),
            "glossary.md",
        ),
        "player": (
            _("Token by token"),
            _("Each step reads one token and generates the next; its row of weights appears. Play it, or use the arrow keys."),
            "glossary.md",
        ),
        "network": (
            _("Map of the network"),
            _("Each bar is one stage of the computation, from the input below to the output above. Choose one to see its numbers."),
            "stages.md",
        ),
        "stage": (
            _("A stage"),
            _("The formula, the numbers of this run, and the line of code that computed them. Nothing is recomputed for this."),
            "stages.md",
        ),
        "arithmetic": (
            _("How this weight was calculated"),
            _(
                "Follows one weight from query and key to the softmax. The weight is recomputed in float64 and "
                "compared with the run."
            ),
            "stages.md",
        ),
    }


def _of_masks_and_positions() -> dict[str, tuple[str, str, str]]:
    return {
        "mask-causal": (
            _("Causal mask"),
            _("A cell shows whether its row may attend to its column. Masked cells lie in the future of their row."),
            "glossary.md",
        ),
        "mask-both": (
            _("Both masks"),
            _("This is the mask that the layer used. A key is allowed only if the causal and the padding mask both allow it."),
            "glossary.md",
        ),
        "mask-padding": (
            _("Padding mask"),
            _(
                "Padding makes sentences equally long, so that they can be computed together. This mask makes sure "
                "that nothing attends to it."
            ),
            "glossary.md",
        ),
        "padding-effect": (
            _("Does padding change the output?"),
            _("The sentence runs twice, with and without padding, and both runs are compared. They should agree."),
            "glossary.md",
        ),
        "introduction": (
            _("Positional encoding"),
            _(
                "Attention alone does not know the order of tokens. Therefore, a vector for each position is added to its "
                "embedding."
            ),
            "glossary.md",
        ),
        "table": (
            _("All values"),
            _("Each row is the vector of one position. Similar colors in neighboring rows mean similar vectors."),
            "glossary.md",
        ),
        "curves": (
            _("Curves"),
            _("Each curve follows one dimension over the positions. Sinusoids of different wavelengths distinguish near from far."),
            "glossary.md",
        ),
        "alike": (
            _("Similarity between positions"),
            _("Each cell compares the vectors of two positions. A bright diagonal band means that neighbors are similar."),
            "glossary.md",
        ),
        "formula": (
            _("The formula"),
            _("It gives each position its vector without any training. Each pair of dimensions is a wave of its own length."),
            "glossary.md",
        ),
    }


def _of_training() -> dict[str, tuple[str, str, str]]:
    return {
        "film": (
            _("Training film"),
            _("The same sentence runs through every saved snapshot of a training. Press play to watch the heads emerge."),
            "training.md",
        ),
        "heads": (
            _("All heads during training"),
            _("Each line follows one head over the snapshots. A steep rise is the moment at which the head specialized."),
            "readings.md",
        ),
        "losses": (
            _("Loss"),
            _("The loss measures how unlikely the correct tokens were; lower is better. The dashed line is the snapshot shown."),
            "training.md",
        ),
        "moments": (
            _("When heads specialized"),
            _("For each head: its value at the start and the end, and when it changed most. Choose a row to see it."),
            "readings.md",
        ),
    }


def _of_compare() -> dict[str, tuple[str, str, str]]:
    return {
        "against": (
            _("What to compare"),
            _(
                "Side A is what the other pages show. Choose here what is different on side B: the model, the sentence or "
                "a setting."
            ),
            "links.md",
        ),
        "outputs": (
            _("The two outputs"),
            _("Both outputs are aligned word by word. Marked words are in one output only."),
            "links.md",
        ),
        "changes": (
            _("Change of every head"),
            _("Each small map is one head; its colors show where weights grew and where they shrank. Click a map to see it below."),
            "readings.md",
        ),
        "selected": (
            _("The selected head on both sides"),
            _("The same head in both runs, and the difference. Rows and columns without a counterpart are omitted."),
            "readings.md",
        ),
        "ranking": (
            _("Heads, most changed first"),
            _("Each row is a head and how much its weights changed. Choose a row to see that head."),
            "readings.md",
        ),
    }


def _of_what_if() -> dict[str, tuple[str, str, str]]:
    return {
        "edits": (
            _("Edits"),
            _("Each edit changes one value inside the run, and the network continues from there. All pages then show that run."),
            "what-if.md",
        ),
        "writes-now": (
            _("What the model generates now"),
            _("The output before and after your edits, token by token. Marked tokens differ."),
            "what-if.md",
        ),
        "likelihood": (
            _("How likely the previous output is now"),
            _(
                "The edited model reads the previous output and gives the probability of each token. Where that "
                "changes, the edit matters."
            ),
            "what-if.md",
        ),
        "matters": (
            _("What matters"),
            _("Each part is removed on its own, and the output is scored again. What changes the output most comes first."),
            "what-if.md",
        ),
    }


def _of_checkpoint() -> dict[str, tuple[str, str, str]]:
    return {
        "diagnosis": (
            _("What the file is"),
            _("The names and shapes of the tensors show which program wrote the file. The evidence for and against is listed."),
            "add-a-layout.md",
        ),
        "roles": (
            _("Assign roles"),
            _("A layout says what each tensor of a file is. It is checked against the shapes before anything runs."),
            "add-a-layout.md",
        ),
        "recorded-run": (
            _("A recorded run"),
            _(
                "The contents of the trace file: the program that ran and each of its attention layers. The numbers "
                "are shown unchanged."
            ),
            "record.md",
        ),
        "numbers": (
            _("Diagnosis"),
            _("Shows whether the weights look trained, and which heads are dead or duplicates. Nothing is run for this."),
            "glossary.md",
        ),
        "weights": (
            _("Weights of a head"),
            _("The learned matrices of one head, as they are in the file. They are the same for every sentence."),
            "glossary.md",
        ),
        "tensors": (
            _("Tensors"),
            _("Every tensor of the file with its statistics. Search the table, or sort it by a column."),
            "glossary.md",
        ),
    }
