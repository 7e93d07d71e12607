"""`@dataclass(frozen=True, slots=True)` for what `tmuxorch ls` imports, at a tenth of the cost.

To import `dataclasses` takes longer than a bare Python does from start to end, and each class is
compiled from generated text. The classes made here are the same to their users: equal by value,
hashable, matched by position, and `dataclasses.replace`, `fields` and `asdict` work on them. Of
what the real one can do they lack base classes and `field()`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def dataclass(*, frozen: bool, slots: bool) -> Callable[[type], type]:
    """The decorator, called as the real one is where a value is meant."""
    if not (frozen and slots):
        raise TypeError("a value is frozen and has slots")
    return _make


def _make(plain: type) -> type:
    body = dict(vars(plain))
    names = tuple(body.get("__annotations__", ()))
    defaults = {name: body.pop(name) for name in names if name in body}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    made: Any = type(
        plain.__name__,
        plain.__bases__,
        {
            "__eq__": _equal,
            "__hash__": _hash,
            "__repr__": _repr,
            "__setattr__": _refuse,
            "__delattr__": _refuse,
            "__reduce__": _reduce,
            **body,
            "__slots__": names,
            "__match_args__": names,
            "__dataclass_fields__": _Fields(plain, defaults),
        },
    )
    setters = [vars(made)[name].__set__ for name in names]

    def initialise(self: Any, *values: Any, **named: Any) -> None:
        if named or len(values) != len(names):
            values = _bind(made, defaults, values, named)
        for put, value in zip(setters, values, strict=True):
            put(self, value)

    made.__init__ = initialise
    return made  # type: ignore[no-any-return]


def _bind(
    made: Any, defaults: dict[str, Any], values: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """All values in the order of the fields, as a call by position and name gives them."""
    names = made.__match_args__
    given = dict(zip(names, values, strict=False))
    if len(values) > len(names) or not given.keys().isdisjoint(named):
        raise TypeError(f"{made.__name__}() got too many values: {values!r}, {named!r}")
    known = {**defaults, **given, **named}
    if known.keys() != set(names):
        odd = sorted(known.keys() ^ set(names))
        raise TypeError(f"{made.__name__}() misses or does not know {', '.join(odd)}")
    return tuple([known[name] for name in names])


class _Fields:
    """The fields as `dataclasses` wants to see them, made when it first looks."""

    def __init__(self, plain: type, defaults: dict[str, Any]) -> None:
        self.plain = plain
        self.defaults = defaults

    def __get__(self, instance: object, owner: Any) -> dict[str, Any]:
        import dataclasses

        names = {"__annotations__": self.plain.__annotations__, "__module__": owner.__module__}
        like: Any = type(self.plain.__name__, (), {**names, **self.defaults})
        owner.__dataclass_fields__ = dataclasses.dataclass(like).__dataclass_fields__
        return owner.__dataclass_fields__  # type: ignore[no-any-return]


def _values(value: Any) -> tuple[Any, ...]:
    return tuple([getattr(value, name) for name in value.__match_args__])


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    pairs = zip(self.__match_args__, _values(self), strict=True)
    fields = ", ".join(f"{name}={value!r}" for name, value in pairs)
    return f"{type(self).__qualname__}({fields})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    raise AttributeError(f"cannot change {name!r}: a {type(self).__name__} is a value")


def _reduce(self: Any) -> tuple[type, tuple[Any, ...]]:
    return type(self), _values(self)
