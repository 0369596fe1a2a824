"""Plain data: values of the built-in types and of the standard collections as bytes, and back.

One tag byte, then the payload. Equal bytes mean equal values (not always the other way round). Exact types only: a
subclass may lie in ==, so it never leaves the process it was made in. Lives at both ends: the test process of a program
encodes what a call leaves, the host decodes it. Left out: comparing.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:  # a worker does without
    from typing import Any

VALUE_BYTES = 1 << 20  # the most that a value may take, encoded
COUNT = struct.Struct("<I")
_DEPTH = 200


# Other types of the library, and of what parts each is built again.
_PARTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "array.array": lambda array: (array.typecode, array.tolist()),
    "types.SimpleNamespace": lambda space: (dict(vars(space)),),
}
_TEXTS = "pathlib.PosixPath pathlib.PurePosixPath pathlib.PureWindowsPath uuid.UUID".split() + [
    f"ipaddress.IPv{version}{kind}" for version in (4, 6) for kind in ("Address", "Interface", "Network")
]
_PARTS |= dict.fromkeys(_TEXTS, lambda value: (str(value),))


class BadValue(Exception):
    """The value is not plain data; the text names its type, or says what is wrong with it."""


_VIEWS = {type(getattr(kind(), view)()): tag for kind in (dict, OrderedDict)
          for view, tag in (("keys", b"k"), ("items", b"m"), ("values", b"v"))}  # fmt: skip
_NOTHING: Any = ()
_EMPTY: Any = {}
_ITERATORS = {
    *(type(iter(kind(_NOTHING))) for kind in (list, tuple, dict, set, bytes, bytearray, deque, OrderedDict)),
    *(type(reversed(kind(_NOTHING))) for kind in (list, tuple, dict, deque)),
    *(type(turn(view)) for turn in (iter, reversed) for view in (_EMPTY.values(), _EMPTY.items())),
    *map(type, (iter(""), iter("\xe9"), iter(range(0)), iter(range(1 << 99)), iter(list, []))),
    *map(type, ((none for none in _NOTHING), map(id, _NOTHING), filter(id, _NOTHING), zip(), enumerate(_NOTHING))),
}


_GENERATOR = type(none for none in _NOTHING)


def encode(value: Any, most: int = VALUE_BYTES) -> bytes:
    """A value of exact built-in types, or of the standard collections, as bytes, `most` of them at most.

    Raises BadValue for any other type, and for more.
    """
    out: list[bytes] = []
    _encode(value, out, _DEPTH)
    data = b"".join(out)
    if len(data) > most:
        raise BadValue(f"a {type(value).__name__} of more than {most >> 20} MiB")
    return data


def _sized(tag: bytes, payload: bytes) -> bytes:
    return tag + COUNT.pack(len(payload)) + payload


def _encode(value: Any, out: list[bytes], depth: int) -> None:
    if depth < 0:
        raise BadValue(f"nested more than {_DEPTH} deep")
    kind = type(value)
    if value is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if value else b"F")
    elif kind is int:
        out.append(_sized(b"i", b"%x" % value if value >= 0 else b"-%x" % -value))
    elif kind is float:
        out.append(_sized(b"f", repr(value).encode()))
    elif kind is str:
        out.append(_sized(b"s", value.encode("utf-8", "surrogatepass")))
    elif kind is bytes or kind is bytearray:
        out.append(_sized(b"b" if kind is bytes else b"B", bytes(value)))
    elif kind is list or kind is tuple:
        _encode_items(b"l" if kind is list else b"t", value, out, depth)
    elif kind is dict:
        _encode_items(b"d", _flat(value.items()), out, depth)
    elif kind is set or kind is frozenset:
        out.append((b"e" if kind is set else b"z") + COUNT.pack(len(value)))
        items = []
        for item in value:
            one: list[bytes] = []
            _encode(item, one, depth - 1)
            items.append(b"".join(one))
        out += sorted(items)
    elif kind is complex:
        _encode_items(b"j", (value.real, value.imag), out, depth)
    elif kind is range:
        _encode_items(b"r", (value.start, value.stop, value.step), out, depth)
    elif kind in _VIEWS:
        tag = _VIEWS[kind]
        _encode_items(tag, _flat(value) if tag == b"m" else value, out, depth)
    elif kind in _ITERATORS:
        _encode_items(b"G" if kind is _GENERATOR else b"I", drained(value), out, depth)
    else:
        _encode_library_type(value, kind, out, depth)


def _encode_items(tag: bytes, items: Any, out: list[bytes], depth: int) -> None:
    out.append(tag + COUNT.pack(len(items)))
    if len(out) > VALUE_BYTES:  # a small value can hold itself many times
        raise BadValue(f"more than {VALUE_BYTES >> 20} MiB")
    for item in items:
        _encode(item, out, depth - 1)


def _flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [part for pair in pairs for part in pair]


def drained(iterator: Iterable[Any]) -> list[Any]:
    items = []
    for item in iterator:
        items.append(item)
        if len(items) > VALUE_BYTES:
            raise BadValue(f"an iterator of more than {VALUE_BYTES} items")
    return items


def _library_name(kind: type) -> str:
    """Module and name of a type of the library; "" for any other."""
    # a class may claim any name, so it must be the very class that the library holds under it
    home = sys.modules.get(kind.__module__)
    return f"{kind.__module__}.{kind.__qualname__}" if getattr(home, kind.__qualname__, None) is kind else ""


def is_iterator(value: Any) -> bool:
    """An iterator of the library's: one that encode drains."""
    return type(value) in _ITERATORS or _library_name(type(value)).startswith("itertools.")


def _encode_library_type(value: Any, kind: type, out: list[bytes], depth: int) -> None:
    name = _library_name(kind)
    if name == "collections.Counter":
        _encode_items(b"c", _flat(dict.items(value)), out, depth)
    elif name == "collections.defaultdict":
        _encode_items(b"d", _flat(dict.items(value)), out, depth)
    elif name == "collections.OrderedDict":
        _encode_items(b"o", _flat(value.items()), out, depth)
    elif name == "collections.ChainMap":
        _encode_items(b"d", _flat(dict(value).items()), out, depth)
    elif name == "collections.deque":
        _encode_items(b"q", [value.maxlen, *value], out, depth)
    elif name == "decimal.Decimal":
        out.append(_sized(b"D", str(value).encode()))
    elif name == "fractions.Fraction":
        _encode_items(b"Q", (value.numerator, value.denominator), out, depth)
    elif name in ("datetime.date", "datetime.time", "datetime.datetime"):
        if getattr(value, "tzinfo", None) is not None and type(value.tzinfo).__module__ not in ("datetime", "zoneinfo"):
            raise BadValue(f"{kind.__name__} with a time zone of its own")
        tag = {"date": b"Y", "time": b"h", "datetime": b"y"}[kind.__name__]
        out.append(_sized(tag, value.isoformat().encode()))
    elif name == "datetime.timedelta":
        _encode_items(b"u", (value.days, value.seconds, value.microseconds), out, depth)
    elif name == "datetime.timezone":
        _encode_items(b"Z", value.__getinitargs__(), out, depth)
    elif name.startswith("itertools."):
        _encode_items(b"I", drained(value), out, depth)
    elif (name := name.replace("._local", "")) in _PARTS:  # where some versions keep paths
        _encode_items(b"L", (name, *_PARTS[name](value)), out, depth)
    elif type(kind) is type and issubclass(kind, tuple) and hasattr(kind, "_fields") and kind.__eq__ is tuple.__eq__:
        _encode_items(b"t", tuple.__getitem__(value, slice(None)), out, depth)  # a named tuple equals a plain one
    else:
        raise BadValue(kind.__name__)


_PLAIN = b"NTFifsbBlt"  # what decodes in linear time whoever wrote it: no hashing, no arithmetic


def decode(data: bytes, plain_only: bool = False) -> Any:
    """What encode was given. Raises ValueError for bytes that encode cannot have written.

    plain_only: refuse (ValueError) every type that hostile contents could make slow to build or to compare.
    """
    value, end = _decode(data, 0, plain_only, _DEPTH)
    if end != len(data):
        raise ValueError("more bytes than one value")
    return value


def _decode(data: bytes, at: int, plain_only: bool, depth: int) -> tuple[Any, int]:
    tag = data[at : at + 1]
    if not tag or depth < 0 or (plain_only and tag not in _PLAIN):
        raise ValueError(f"no value at byte {at}")
    at += 1
    if tag in b"NTF":
        return {b"N": None, b"T": True, b"F": False}[tag], at
    if at + 4 > len(data):
        raise ValueError("cut off")
    (count,) = COUNT.unpack_from(data, at)
    at += 4
    if tag in b"ifsbBDYhy":
        payload = data[at : at + count]
        if len(payload) != count:
            raise ValueError("cut off")
        return _decode_scalar(tag, payload), at + count
    items = []
    for _ in range(count):
        item, at = _decode(data, at, plain_only, depth - 1)
        items.append(item)
    return _decode_items(tag, items), at


def _decode_scalar(tag: bytes, payload: bytes) -> Any:
    if tag == b"i":
        return int(payload, 16)
    if tag == b"f":
        return float(payload)
    if tag == b"s":
        return payload.decode("utf-8", "surrogatepass")
    if tag == b"b":
        return payload
    if tag == b"B":
        return bytearray(payload)
    if tag == b"D":
        import decimal

        return decimal.Decimal(payload.decode())
    import datetime

    kind: Any = {b"Y": datetime.date, b"h": datetime.time, b"y": datetime.datetime}[tag]
    return kind.fromisoformat(payload.decode())


def _decode_items(tag: bytes, items: list[Any]) -> Any:
    if tag == b"l":
        return items
    if tag == b"t":
        return tuple(items)
    if tag == b"e":
        return set(items)
    if tag == b"z":
        return frozenset(items)
    if tag in (b"I", b"G"):
        return iter(items) if tag == b"I" else (item for item in items)
    if tag == b"q":
        return deque(items[1:], items[0])
    if tag == b"k":
        return dict.fromkeys(items).keys()
    if tag == b"v":
        return dict(enumerate(items)).values()
    if tag in (b"d", b"c", b"o", b"m"):
        pairs = dict(zip(items[::2], items[1::2], strict=True))
        if tag == b"c":
            return Counter(pairs)
        return OrderedDict(pairs) if tag == b"o" else pairs.items() if tag == b"m" else pairs
    if tag == b"j":
        return complex(*items)
    if tag == b"r":
        return range(*items)
    if tag == b"Q":
        import fractions

        return fractions.Fraction(*items)
    if tag in (b"u", b"Z"):
        import datetime

        return (datetime.timedelta if tag == b"u" else datetime.timezone)(*items)
    if tag == b"L" and items[0] in _PARTS:
        module, _, name = items[0].partition(".")
        kind = getattr(__import__(module), name)
        return kind(**items[1]) if name == "SimpleNamespace" else kind(*items[1:])
    raise ValueError(f"no such tag: {tag!r}")
