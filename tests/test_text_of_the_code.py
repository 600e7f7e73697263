"""Names say what a value is, and comments stand where a newcomer stops; `tests/text_of_the_code.txt` lists where not yet."""

from tests.text_of_the_code import LIST, as_list, comment_shares, exceptions, folder_of, listed, names_that_say_nothing, sources

WRITE = "python -m tests.text_of_the_code --write"


def test_no_file_gets_more_names_that_say_nothing_and_no_folder_fewer_comments() -> None:
    counts, allowed = exceptions(sources()), listed(LIST.read_text(encoding="utf-8"))
    more = [f"{path} has {count}, not {allowed.get(path, 0)}" for path, count in counts.items() if count > allowed.get(path, 0)]
    quiet = sorted(path for path in counts.keys() - allowed.keys() if not counts[path])
    assert not more, (
        f"A name says what the value is, not found, own, each …; rename it (if a file moved: {WRITE}): {', '.join(more)}"
    )
    assert not quiet, (
        f"Comment where a newcomer stops: why, or what the next five lines do (if it moved: {WRITE}): {', '.join(quiet)}"
    )


def test_the_list_of_exceptions_only_shrinks() -> None:
    text = LIST.read_text(encoding="utf-8")
    assert text == as_list(exceptions(sources())), f"The list of exceptions can be shorter (thank you): {WRITE}"


def test_all_bindings_are_counted() -> None:
    code = """
import found as told
class Shown: said: int = 1
async def _own(each, *, one):
    there = [place for place in each]
    self.gaps = found
    match there:
        case [shown, *told]: ...
    try: ...
    except ValueError as said: ...
"""
    assert names_that_say_nothing(code) == 12
    assert names_that_say_nothing("print(found, own.told); trace = foundation = 1") == 0


def test_comments_are_counted_by_folder_and_feature() -> None:
    codes = {"viz/features/live/a/b.py": "# why\nx = 1  # no\n    # because\n" + "x\n" * 97, "viz/url/a.py": "x\n" * 100}
    assert comment_shares(codes) == {"viz/features/live": 2.0, "viz/url": 0.0}
    assert exceptions(codes) == {"viz/url": 0}
    assert folder_of("viz/main.py") == "viz"


def test_of_two_lines_for_a_file_the_smaller_one_counts() -> None:
    assert listed("model/a.py 3\nmodel/a.py 2\nviz/url\n") == {"model/a.py": 2, "viz/url": 0}
