"""Acting on many items at once where some of them may be refused."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from stepcraft.errors import MemoryFailure

T = TypeVar("T")


class BrokenModel(MemoryFailure):
    """An embedding model gave something else than one vector a text, whatever the texts are."""


MOST_REFUSED = 20
"""Items of one batch that may be refused; with more, the failure is one of the whole batch."""


def refusals(
    items: Sequence[T], act: Callable[[Sequence[T]], object], probe: Callable[[], object]
) -> list[tuple[T, MemoryFailure]]:
    """Act on all items; return those that are refused, with the reasons.

    Where the whole batch fails, it is halved until the items are found that fail on their own.

    Args:
        items: What to act on.
        act: Acts on some items, all or none; it may be called again with fewer.
        probe: Fails if what is asked takes nothing at all.

    Raises:
        MemoryFailure: The failure is not one of single items: the probe fails, too, more than
            `MOST_REFUSED` items do, or it is a BrokenModel.
    """
    refused: list[tuple[T, MemoryFailure]] = []

    def divide(some: Sequence[T]) -> None:
        try:
            act(some)
        except BrokenModel:
            raise
        except MemoryFailure as failure:
            if not refused:
                probe()
            if len(some) > 1:
                divide(some[: len(some) // 2])
                divide(some[len(some) // 2 :])
                return
            refused.append((some[0], failure))
            if len(refused) > MOST_REFUSED:
                raise

    if items:
        divide(items)
    return refused
