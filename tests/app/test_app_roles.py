"""Assigning roles: a file that no layout fits is described on the page Checkpoint, and its heads are then shown."""

from pathlib import Path

import pytest
import torch

from model.requests.layout_file import parse
from tests.app.visiting import Visitor
from tests.layout_files import PLAIN, foreign


def role_of(visitor: Visitor, pattern: str) -> str:
    """The key of the field with the role of a pattern."""
    keys = [str(each.key) for each in visitor.app.selectbox if str(each.key).endswith(f":{pattern}")]
    assert len(keys) == 1, keys
    return keys[0]


def said(visitor: Visitor) -> str:
    return "\n".join(each.value for each in visitor.app.info).replace("\\", "")


@pytest.mark.slow
def test_a_file_that_nobody_knows_is_described_and_used(stocked: Path) -> None:
    state, told, _built = foreign(PLAIN)
    torch.save(state, stocked / "lab.pt")
    visitor = Visitor("checkpoint", model="lab.pt")
    assert any("match no known layout" in problem for problem in visitor.problems)
    assert visitor.app.button(key="use-layout").disabled
    assert "the first is “words.w”" in said(visitor)
    for pattern, role in told.roles.items():
        visitor.app.selectbox(key=role_of(visitor, pattern)).set_value(role)
    visitor.app.selectbox(key=role_of(visitor, "words.w")).set_value("positions")
    visitor.go("checkpoint")
    assert "“places.w” and “words.w” both have the role “positions” in layer 0" in said(visitor)
    visitor.app.selectbox(key=role_of(visitor, "words.w")).set_value("embedding")
    visitor.go("checkpoint")
    assert "Every tensor has a role, and the shapes fit." in said(visitor)
    visitor.press("use-layout")
    settings = dict(pair.split("=") for pair in visitor.url["set"].split())
    assert settings["layout_file"].startswith("words-")
    page = "\n".join(each.value for each in visitor.app.markdown).replace("\\", "")
    assert "What the file does not say" in page
    assert "lab.pt: layout file my-program." in page
    assert parse(told.to_json().encode(), "x").roles == told.roles
