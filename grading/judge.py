"""The judge: what runs in a clean process of the sandbox before anything of a test, and decides what a test asks.

Its text is sent, from the marked line on (dialogue.py), and followed by the piece that asserts.take_apart has made of a
test, which calls __leaf__ for each value of the program and leaves a verdict, or questions, in __value__. Test code
runs in the same namespace, so every name in here is one that no test has, and nothing is imported.

Given: the answers known, as (question, whole, value), in the order of the questions. A question: the number of a leaf,
the bound names that it reads and those that only the whole of it does, encoded. Whole: the value is that of all that
hangs on the leaf, see asserts.Leaf. Beside: the groups that are asked in place of the leaves in them. Guess: what a
comparison with an unknown value comes to, so that the questions behind it are met as well.

Left out: what is a leaf (asserts.py), and any word of the program itself.
"""

from collections.abc import Callable, Iterator
from typing import Any

# What the sandbox and the piece that is run bind, and the types of what is sent.
__given__: list[tuple[tuple[int, bytes, bytes], bool, Any]] = []
__guess__ = False
__beside__: list[int] = []
__asks__: list[tuple[int, bytes, bytes]]
__shown__: object


def __encode__(value: object) -> bytes:
    raise NotImplementedError


def __decode__(data: bytes) -> object:
    raise NotImplementedError


# -- sent to the sandbox --
import builtins  # noqa: E402


class __Enough__(BaseException):
    pass


class __Unknown__:
    def __eq__(self, *other: object) -> bool:
        self.__itself__()
        return __guess__

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __contains__ = __eq__

    def __itself__(self, *given: object, **named: object) -> "__Unknown__":
        global __used__
        __used__ += 1
        if __used__ > 10_000:  # a loop until it is None never ends
            raise __Enough__
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __itself__
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __and__ = __or__ = __xor__ = __itself__
    __neg__ = __abs__ = __round__ = __getitem__ = __call__ = __getattr__ = __itself__

    def __len__(self) -> int:
        return 1

    __hash__ = __int__ = __index__ = __len__

    def __float__(self) -> float:
        return 1.0

    def __iter__(self) -> "Iterator[object]":
        return iter(())


__asks__ = []
__met__ = __used__ = 0
__unsendable__ = False
__shown__ = ""


def __leaf__(
    leaf: int,
    bound: dict[str, object],
    more: dict[str, object],
    rest: "Callable[[object], object]",
    call: object = None,
    *,
    __len: "Callable[..., int]" = len,
    __text: type[str] = str,
    __is: "Callable[..., bool]" = isinstance,
    __errors: "dict[str, Any]" = vars(builtins),  # noqa: B008
) -> object:
    global __met__, __shown__, __unsendable__
    try:
        ask = leaf, __encode__(bound), __encode__(more)
    except BaseException:
        __unsendable__ = not __asks__  # else it may be what is not known yet
        raise
    if not __asks__ and __met__ < __len(__given__):
        known, whole, value = __given__[__met__]
        if known == ask:
            __met__ += 1
            if __is(value, __text):
                raise __errors.get(value, Exception)
            value = __decode__(value)
            __shown__ = value
            return (call or value) if whole else rest(value)
    if __len(__asks__) >= 256:
        raise __Enough__
    __asks__.append(ask)
    return __Unknown__()


def __group__(number: int, bound: dict[str, object], inside: "Callable[[], object]") -> object:
    return __leaf__(number, bound, {}, lambda value: value) if number in __beside__ else inside()


def __got__(__repr: "Callable[[object], str]" = repr) -> str:
    text = __repr(__shown__)[:100_000]
    return text.partition(" object at ")[0] + ">" if " object at 0x" in text else text
