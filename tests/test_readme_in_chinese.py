"""README.zh-CN.md: what people copy from it is what README.md has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commands(name: str) -> list[str]:
    """The lines of the code blocks without a language, which are typed into a shell."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for language, block in blocks if not language for line in block.splitlines()]


def test_the_start_lines_are_those_of_the_english_readme() -> None:
    started = [line for line in commands("README.md") if "-m venv" in line]
    assert len(started) == 4
    assert [line for line in commands("README.zh-CN.md") if "-m venv" in line] == started


def test_every_command_stands_in_the_english_readme_too() -> None:
    assert set(commands("README.zh-CN.md")) <= set(commands("README.md"))


def test_every_model_of_one_table_stands_in_the_other() -> None:
    tables = [
        set(re.findall(r"checkpoints/([\w-]+)/CARD", (ROOT / name).read_text("utf-8"))) for name in ("README.md", "README.zh-CN.md")
    ]
    assert tables[0] == tables[1]
