"""From Markdown to HTML without any HTML of the author: raw HTML is shown as text, pictures are not loaded, links are checked."""

from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from viz.features.lectures.presenter.formulas import mathml


def _formula(latex: str, options: dict[str, Any]) -> str:
    return mathml(latex, options["display_mode"])


_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": False})
    .enable(["table", "strikethrough"])
    .disable("image")
    .use(dollarmath_plugin, allow_labels=False, allow_space=False, allow_digits=False, double_inline=True, renderer=_formula)
)


def html(markdown: str) -> str:
    """The HTML of a text in Markdown."""
    return str(_MARKDOWN.render(markdown))


def inline(markdown: str) -> str:
    """The HTML of a line in Markdown, without a paragraph around it."""
    return str(_MARKDOWN.renderInline(markdown))


def tokens(markdown: str) -> list[Token]:
    """The tokens of a text in Markdown."""
    return _MARKDOWN.parse(markdown)
