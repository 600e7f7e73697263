"""Names of wrappers in the names of tensors: which readings there are, and that no two tensors get one name."""

import pytest

from model.inspection.wrappers import readings


@pytest.mark.parametrize(
    ("names", "last", "removed"),
    [
        (["module.a.w", "module.b.w"], ["a.w", "b.w"], "module."),
        (["module._orig_mod.a.w", "module._orig_mod.b.w"], ["a.w", "b.w"], "module._orig_mod."),
        (["_fsdp_wrapped_module.a._fsdp_wrapped_module.w"], ["a.w"], "_fsdp_wrapped_module."),
        (["a.w", "h.0._checkpoint_wrapped_module.w"], ["a.w", "h.0.w"], "_checkpoint_wrapped_module."),
        (["a.w", "h.module.0._orig_mod.w"], ["a.w", "h.0.w"], "module._orig_mod."),
        (["a.module", "b.w"], ["a.module", "b.w"], ""),
        (["module.a.w", "b.w", "c.w"], ["a.w", "b.w", "c.w"], "module."),
    ],
)
def test_wrappers_go_from_the_front_and_from_inside(names: list[str], last: list[str], removed: str) -> None:
    found = list(readings(names))
    assert list(found[0].names) == names
    assert [(list(each.names), each.removed) for each in found if list(each.names) == last][:1] == [(last, removed)]
    for each in found:
        assert list(each.names.values()) == names


def test_two_tensors_never_get_one_name() -> None:
    assert [list(each.names) for each in readings(["a.w", "_orig_mod.a.w", "_orig_mod.b.w"])] == [
        ["a.w", "_orig_mod.a.w", "_orig_mod.b.w"]
    ]
    assert [list(each.names) for each in readings(["w", "module.w"])] == [["w", "module.w"]]


def test_any_name_is_a_wrapper_only_where_that_is_asked() -> None:
    names = ["student.a.w", "student.b.w", "head.w"]
    assert [list(each.names) for each in readings(names)] == [names]
    assert ["a.w", "b.w", "head.w"] in [list(each.names) for each in readings(names, any_first=True)]
