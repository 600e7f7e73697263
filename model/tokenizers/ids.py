"""Token ids, checked against the size of a vocabulary."""

from collections.abc import Iterable

from model.errors import TokenOutOfRange


def check_ids(name: str, ids: Iterable[int], size: int) -> None:
    """Checks that a vocabulary of `size` texts has all of `ids`.

    Args:
        name: what the ids are, for the error's sentence.

    Raises:
        TokenOutOfRange: it does not have one of them.
    """
    for id_ in ids:
        if not 0 <= id_ < size:
            raise TokenOutOfRange(found=id_, last=size - 1)
