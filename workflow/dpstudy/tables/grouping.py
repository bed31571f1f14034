"""Things put together by what they have in common."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def by_key(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key -> the items of that key, in the order of their first items.

    >>> by_key(["ant", "bee", "ape"], lambda name: name[0])
    {'a': ['ant', 'ape'], 'b': ['bee']}
    """
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> list[list[T]]:
    """The lists of `by_key`."""
    return list(by_key(items, key).values())
