"""The tables of foreign files and folders in the documentation: `python -m tests.foreign` tries every case and writes them anew."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from model.errors import HeadlightError
from tests.foreign_files import FILES, Case
from tests.foreign_folders import FOLDERS

DOCS = Path(__file__).parents[1] / "docs"
TABLES: Mapping[str, Sequence[Case]] = {"add-a-layout.md": FILES, "huggingface.md": FOLDERS}
HEAD = "| tried | largest difference | refused, in these words |\n|---|---|---|\n"


def tried(case: Case, folder: Path) -> tuple[float | None, str]:
    """The largest difference of a case that runs, or None and what its refusal says, without the path and what to do."""
    try:
        return case.measure(folder), ""
    except HeadlightError as error:
        said = str(error).replace(f"{folder}/weights.pt", "FILE").replace(str(folder), "FOLDER")
        for advice in (
            ". Nothing was run",
            ". Do not change its config.json",
            ". If a program",
            ". Use the config.json",
            ". Save the complete",
            ". Leave ",
            ". Choose the file ",
            "; encoder.layer.0.",
        ):
            said = said.partition(advice)[0]
        return None, said.replace("|", "\\|")


def documented(page: str) -> dict[str, tuple[str, str]]:
    """Difference and words of each case, by its name, as a page of the documentation has them."""
    rows = (DOCS / page).read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0].splitlines()
    cells = [row.removeprefix("|").removesuffix("|").replace("\\|", "\0").split("|") for row in rows]
    return {name.strip(): (number.strip(), words.strip().replace("\0", "\\|")) for name, number, words in cells}


def main() -> None:
    """Writes the tables."""
    for page, cases in TABLES.items():
        rows = []
        for case in cases:
            with TemporaryDirectory() as folder:
                number, words = tried(case, Path(folder))
            rows.append(f"| {case.name} | {'' if number is None else f'{number:.0g}'} | {words} |")
        path = DOCS / page
        before, _head, rest = path.read_text(encoding="utf-8").partition(HEAD)
        path.write_text(before + HEAD + "\n".join(rows) + "\n\n" + rest.partition("\n\n")[2], encoding="utf-8")


if __name__ == "__main__":
    main()
