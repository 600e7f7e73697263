"""Words for measures: their titles on every page, and what they mean."""

from viz.i18n.translate import _, _n


def titles() -> dict[str, str]:
    """Titles of the measures by name, in the order of a table."""
    return {
        "entropy": _("Entropy (nats)"),
        "largest": _("Largest weight"),
        "coverage": _("Coverage of the source"),
        "monotony": _("Monotonicity"),
        "distance": _("Distance (tokens)"),
        "near_diagonal": _("Weight near the diagonal"),
        "antidiagonal": _("Weight near the antidiagonal"),
        "previous": _("Weight on the previous token"),
        "next": _("Weight on the next token"),
        "same": _("Weight on the same position"),
        "first": _("Weight on the first token"),
        "last": _("Weight on the last token"),
        "special": _("Weight on special tokens"),
        "punctuation": _("Weight on punctuation"),
        "duplicate": _("Weight on the same word elsewhere"),
        "induction": _("Weight on the token that followed the same word"),
        "norm": _("Length of the context vector"),
        "alignment_error": _("Alignment error rate"),
    }


def of_heads() -> dict[str, str]:
    """Titles of all that a survey knows of a head: the measures, and the numbers that are no means over texts."""
    return titles() | {"variation": _("Variation from text to text (nats)"), "copying": _("Copying score")}


def of_training() -> dict[str, str]:
    """Titles of what Training draws of every head: measures, and how similar a head is to what it becomes."""
    return titles() | {"similarity": _("Similarity to the final head")}


def meanings() -> dict[str, str]:
    """What the measures of Explore and Training are, with their formulas, and what they are not."""
    return {
        "entropy": _(
            "Mean over rows of −Σ w ln w. 0 means that a row attends to one key; ln m, to all m keys equally. Low "
            "entropy does not mean that the key is useful."
        ),
        "largest": _("The largest weight of each row, averaged over rows."),
        "distance": _(
            "Mean over rows of Σ w · |p − j|: how far the keys that a row attends to are from its own position "
            "p. In cross-attention, rows are spread evenly over the keys."
        ),
        "special": _(
            "Mean weight on tokens that stand for no text (start, end, padding), the row’s own token excepted, over rows that "
            "may attend to such tokens and to others."
        ),
        "near_diagonal": _(
            "Mean over rows of the weight on keys j with |p − j| ≤ 1, where p is the row’s own position (in "
            "cross-attention, rows are spread evenly over the keys). It does not mean that those words belong "
            "together."
        ),
        "antidiagonal": _(
            "In cross-attention: mean over rows of the weight on keys j with |p − (m − 1 − j)| ≤ 1, the diagonal of the keys "
            "read backwards. A head that reverses its input scores 1, but one that rests in the middle also scores above 0."
        ),
        "similarity": _(
            "Mean over rows of Σ min(w, w at the last snapshot): how much of the attention is already where this "
            "head will put it in the end (1 at the end, by definition). It does not measure word alignment: the "
            "model was never told which word translates which."
        ),
    }


def over_rows(count: int) -> str:
    """Over how many rows a head's numbers are means."""
    return _n(
        "Mean over the {count} row that has a choice: it may attend to at least two keys, and all its weights are finite.",
        "Mean over the {count} rows that have a choice: they may attend to at least two keys, and all their weights are finite.",
        count,
        count=count,
    )


def of_rows() -> str:
    """The rows over which a mean is, where heads differ in their number."""
    return _("Rows that have a choice count: those that may attend to at least two keys, with weights that are all finite.")
