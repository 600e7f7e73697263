"""The dialog “Figure for print”: opened beside the exports, its options, its files."""

from pathlib import Path

from tests.app.visiting import Visitor


def test_the_dialog_draws_the_picture_as_it_is_asked_for(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5 w6", reading="mean")
    visitor.press("export")
    visitor.press("figure-explore")
    app = visitor.app
    (picture,) = [box for box in app.selectbox if box.key == "figure:picture"]
    assert picture.value == "reading"
    assert {"head", "lines", "atlas", "mask", "reading-lines"} <= {
        option.rpartition("(")[2].rstrip(")") for option in picture.options
    }
    assert [block.value for block in app.code if "Model:" in block.value], "the caption stands beside it"
    kinds = {button.proto.id.rpartition("-")[2] for button in app.get("download_button") if "figure-" in button.proto.id}
    assert kinds == {"svg", "pdf", "png"}
    assert not visitor.problems


def pictures(visitor: Visitor) -> set[str]:
    """The names of the pictures that the open dialog offers."""
    (box,) = [box for box in visitor.app.selectbox if box.key == "figure:picture"]
    return {option.rpartition("(")[2].rstrip(")") for option in box.options}


def test_the_step_player_and_the_map_of_the_network_can_be_saved_for_print(stocked: Path) -> None:
    visitor = Visitor("step", text="w4 w5 w6", step="1")
    visitor.press("figure-player")
    assert {"candidates", "strips", "head", "lines"} <= pictures(visitor)
    visitor = Visitor("step", text="w4 w5 w6", clock="computation")
    visitor.press("figure-network")
    assert visitor.app.get("download_button")
    assert not visitor.problems


def test_every_chart_of_a_page_can_be_saved_for_print(stocked: Path) -> None:
    visitor = Visitor("masks", text="w4 w5 w6")
    assert [button.key for button in visitor.app.button if str(button.key).startswith("figure-mask")]
    visitor.press("figure-mask-both")
    assert visitor.app.get("download_button")
    assert not visitor.problems
