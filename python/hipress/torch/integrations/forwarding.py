"""What a wrapper of an optimizer hands on to it."""

from __future__ import annotations

from typing import Any


def attribute_of(owner: str, name: str) -> property:
    """A property that is an attribute of another object: read, set and deleted there.

    :param owner: the attribute that has that object
    """

    def fget(self: Any) -> Any:
        return getattr(getattr(self, owner), name)

    def fset(self: Any, value: Any) -> None:
        setattr(getattr(self, owner), name, value)

    def fdel(self: Any) -> None:
        delattr(getattr(self, owner), name)

    return property(fget, fset, fdel, f"The optimizer's ``{name}``.")
