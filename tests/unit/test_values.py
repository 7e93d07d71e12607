"""Our cheap dataclasses are to their users what the real ones are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

import pytest

from tmuxorch import model, values
from tmuxorch.core import observation
from tmuxorch.model import Exit, ProcessId

CHEAP = [
    made
    for module in (model, observation)
    for made in vars(module).values()
    if isinstance(made, type) and made.__module__ == module.__name__ and is_dataclass(made)
]


class Plain:
    """A point."""

    x: int
    y: int = 2
    name: str | None = None

    @property
    def sum(self) -> int:
        return self.x + self.y

    @classmethod
    def origin(cls) -> Plain:
        return cls(0, 0)  # type: ignore[call-arg]

    def __str__(self) -> str:
        return f"<{self.x}>"


def _copy_of(plain: type) -> type:
    return type(plain.__name__, (), {k: v for k, v in vars(plain).items() if k[:6] != "__dict"
                                     and k != "__weakref__"})  # fmt: skip


Real: Any = dataclasses.dataclass(frozen=True, slots=True)(_copy_of(Plain))
Cheap: Any = values.dataclass(frozen=True, slots=True)(_copy_of(Plain))
Cheap.__module__, Cheap.__qualname__ = __name__, "Cheap"

CALLS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((1,), {}),
    ((1, 3), {}),
    ((1, 3, "n"), {}),
    ((), {"x": 1}),
    ((1,), {"name": "n"}),
    ((), {}),
    ((1, 2, "n", 4), {}),
    ((1,), {"x": 1}),
    ((1,), {"z": 1}),
    ((1, 2, "n"), {"z": 1}),
]


@pytest.mark.parametrize("call", CALLS)
def test_it_is_made_and_refused_like_a_real_one(
    call: tuple[tuple[object, ...], dict[str, object]],
) -> None:
    args, named = call
    try:
        real = Real(*args, **named)
    except TypeError:
        with pytest.raises(TypeError):
            Cheap(*args, **named)
        return
    cheap = Cheap(*args, **named)
    assert asdict(cheap) == asdict(real)
    assert repr(cheap).partition("(")[2] == repr(real).partition("(")[2]
    assert str(cheap) == str(real)
    assert cheap.sum == real.sum


def test_it_is_equal_and_hashed_by_value() -> None:
    assert Cheap(1) == Cheap(1, 2)
    assert hash(Cheap(1)) == hash(Cheap(1, 2))
    assert Cheap(1) != Cheap(2)
    assert Cheap(1) != Real(1)
    assert Cheap(1) != (1, 2, None)
    assert len({Cheap(1), Cheap(1, 2), Cheap(3)}) == 2


def test_it_cannot_be_changed_or_added_to() -> None:
    value = Cheap(1)
    for name in ("x", "other"):
        with pytest.raises(AttributeError):
            setattr(value, name, 5)
    with pytest.raises(AttributeError):
        del value.x
    assert not hasattr(value, "__dict__")
    assert value.x == 1


def test_the_tools_for_dataclasses_work_on_it() -> None:
    value = Cheap(1, name="n")
    assert replace(value, y=9) == Cheap(1, 9, "n")
    with pytest.raises(TypeError):
        replace(value, z=9)
    assert [(f.name, f.default) for f in fields(value)] == [
        (f.name, f.default) for f in fields(Real)
    ]
    assert Cheap.__doc__ == "A point."
    assert Cheap.origin() == Cheap(0, 0)


def test_it_is_matched_by_position() -> None:
    match Exit(3, None):
        case Exit(code, None):
            assert code == 3
        case _:
            raise AssertionError


def test_it_can_be_copied_and_sent_to_another_process() -> None:
    process = ProcessId("b", 1, 2, 3, 4)
    assert copy.copy(process) == copy.deepcopy(process) == process
    assert pickle.loads(pickle.dumps(process)) == process


@pytest.mark.parametrize("made", CHEAP)
def test_every_class_of_the_model_has_its_fields(made: Any) -> None:
    assert tuple(f.name for f in fields(made)) == made.__match_args__


def test_what_ls_imports_is_free_of_the_real_ones() -> None:
    script = (
        "import sys, tmuxorch.cli.ls; "
        "print([m for m in ('dataclasses', 'inspect', 'typing') if m in sys.modules])"
    )
    # Without `site`, which may import them itself.
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
