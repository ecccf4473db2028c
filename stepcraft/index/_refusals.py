"""Process many items at once even if some of them are refused."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from stepcraft.errors import MemoryFailure

T = TypeVar("T")


class BrokenModel(MemoryFailure):
    """An embedding model never returns one vector per text, whatever the texts."""


MOST_REFUSED = 20
"""The maximum number of refused items in a batch; with more, the batch as a whole counts as failed.
"""


def refusals(
    items: Sequence[T], act: Callable[[Sequence[T]], object], probe: Callable[[], object]
) -> list[tuple[T, MemoryFailure]]:
    """Process all items, and return those that are refused, with the reasons.

    If the whole batch fails, it is halved until the items that fail on their own are found.

    Args:
        items: The items to process.
        act: Processes the given items, all or none of them; it may be called again with fewer.
        probe: Fails if requests fail regardless of the items.

    Raises:
        MemoryFailure: The failure is not limited to single items: the probe fails too, more than
            `MOST_REFUSED` items fail, or the failure is a BrokenModel.
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
