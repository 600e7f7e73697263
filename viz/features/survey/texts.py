"""The help of the panels of the page Survey: as in panel_help.py."""

from viz.i18n.translate import N_

SURVEY: dict[str, tuple[str, str, str]] = {
    "survey": (
        N_("Survey: all heads"),
        N_(
            "Each dot and each cell is one head over many texts; a head that meets the criterion of a role carries its name. "
            "A box drawn around dots marks their heads in the grid and in the table."
        ),
        "survey.md",
    ),
    "survey-grid": (
        N_("Survey: layers × heads"),
        N_(
            "Every head by the number that colors the dots, or by that from bottom to top if their color is the kind of attention. "
            "An empty cell means that the number is not defined for this head; a click on a cell selects its head."
        ),
        "survey.md",
    ),
    "survey-head": (
        N_("Survey: the selected head"),
        N_(
            "The roles of the head with their criteria and baselines, and how one of its measures varies over "
            "the texts. A role says what the head does most, not why."
        ),
        "survey.md",
    ),
    "survey-texts": (
        N_("Survey: single texts"),
        N_(
            "Texts in which the measure of the head is largest, smallest and in between. Choose one to run it "
            "now and see the map of the head."
        ),
        "survey.md",
    ),
    "survey-plane": (
        N_("Survey: queries and keys"),
        N_(
            "Queries and keys of one head in many texts, moved so that nearness means a high score; this changes "
            "no weight. A plane cannot show all of it: the rank correlation says how much."
        ),
        "one-head.md#queries-and-keys-in-a-plane",
    ),
    "survey-examples": (
        N_("Survey: examples"),
        N_(
            "Cells of one head with certain words and at least a certain weight, beside the number that chance would give. "
            "Click a row, then open it in Explore."
        ),
        "one-head.md#examples-of-a-head",
    ),
    "survey-alike": (
        N_("Survey: similar heads"),
        N_(
            "The Jensen-Shannon divergence of the rows of two heads, a mean over texts, in bits. Similar heads "
            "are next to each other (clusters by average linkage)."
        ),
        "survey.md",
    ),
    "survey-relations": (
        N_("Survey: dependencies"),
        N_(
            "For each relation of the parses: the head that finds it most often, and the fixed offset that does. "
            "A head that is no better than this offset shows no knowledge of syntax."
        ),
        "survey.md#dependencies",
    ),
    "survey-film": (
        N_("Survey: during training"),
        N_(
            "The same texts, measured in every snapshot. The dotted lines are one standard deviation over the "
            "texts above and below: they show how much single texts differ."
        ),
        "survey.md",
    ),
    "survey-two": (
        N_("Survey: two surveys side by side"),
        N_(
            "The mean of every head in two surveys. A difference of less than two or three standard errors may "
            "be chance; among hundreds of differences, some larger ones are chance, too."
        ),
        "survey.md",
    ),
    "survey-table": (
        N_("Survey: all numbers"),
        N_(
            "The mean of every head over the texts, for each measure. An empty cell means that the measure is "
            "not defined for the head."
        ),
        "survey.md",
    ),
}
