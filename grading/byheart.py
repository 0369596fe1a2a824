"""Does a program know the answers by heart? What its text shows: sample outputs and sample inputs among its constants.

    marks(code, tests, kind, statement) -> ["holds 3 expected outputs", ...]    empty where nothing is seen
    given(test, kind)                                                           what a test gives a program, as one text

Read, never run: a constant is what stands in the text, or what is made of such things alone (joined, repeated, cut,
turned round, decoded from bytes, hex, base64, a compressed text, a list of code points). Three kinds are looked for:

    outputs     expected outputs of some length that the statement does not mention; prints in a row count as one
    inputs      a whole input of some length; or a table, or a chain of comparisons, that takes inputs of tests to their
                answers and knows hardly anything else
    digests     a table, or comparisons, behind a hash of what was read

Short answers (YES, -1, 0), tables of more than the tests and tables over a whole range are what honest programs have.
An honest program whose small table is that of the tests (days of the week, A to T, n = 2, 3, 4 before a formula) is
marked too, and one that hides its table (pairs zipped at run time, arithmetic on conditions, exec of a text) is not:
a mark is a doubt, which spare tests settle (figures/verified.py). Left out: an answer made at run time.
"""

from __future__ import annotations

import ast
import base64
import binascii
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from tasksets.task import Test, parse

MOST = 200_000  # characters of a program that are read, and of a constant that is made
NODES = 20_000  # of a program's tree that are looked at
RICH = 6  # characters of an output, or of an input, that nobody writes down by chance
SEVERAL = 3  # pairs of input and answer that make a table of tests
OUTPUTS, INPUTS, DIGESTS = "holds expected outputs", "tells inputs of tests apart", "looks inputs up by their hash"
_HASHES = {"md5", "sha1", "sha256", "sha512", "blake2b", "blake2s", "sha3_256", "crc32", "adler32", "hash", "sha224"}


def given(test: Test, kind: str) -> str:
    """What a test gives a program, in one spelling; of an assert that is no plain call its text."""
    return pair[0] if (pair := _pair(test, kind)) and pair[0] else " ".join(test.input.split())


class _Unknown(Exception):
    """An expression that is no constant."""


def marks(code: str, tests: Sequence[Test], kind: str, statement: str = "") -> list[str]:
    """What marks a program, in words; tests: all that it may have been taught, visible and hidden."""
    tree = parse(code[:MOST])
    if tree is None:
        return []
    pairs = [pair for test in tests if (pair := _pair(test, kind))]
    told = statement.split("\nExample")[0]
    try:
        constants, tables, chains = _read(tree)
    except RecursionError:
        return []
    found = []
    samples = {pair[1] for test in tests if test.source == "public" and (pair := _pair(test, kind))}
    held = _held(constants, {output for _, output in pairs}, samples, told)
    if held:
        found.append(f"{OUTPUTS}: {held[0]!r:.40}" + (f" and {len(held) - 1} more" if len(held) > 1 else ""))
    inputs = dict(pairs)
    whole = sorted(text for text in constants if text in inputs and _is_rich(text, told))
    if whole:
        found.append(f"{INPUTS}: {whole[0]!r:.40}")
    elif (most := max((_known(table, inputs) for table in (*tables, chains)), default=0)) >= SEVERAL:
        found.append(f"{INPUTS}: {most} with their answers")
    if _by_digest(tree):
        found.append(DIGESTS)
    return found


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pair(test: Test, kind: str) -> tuple[str, str] | None:
    """Input and answer of a test, as `_text` writes constants."""
    if kind == "stdio":
        return _side(test.input), _side(test.output)
    program = parse(test.input)
    last = program.body[-1] if program and program.body else None
    if not (isinstance(last, ast.Assert) and isinstance(last.test, ast.Compare) and len(last.test.comparators) == 1):
        return None
    sides = [last.test.left, last.test.comparators[0]]
    call = next((side for side in sides if isinstance(side, ast.Call)), None)
    if call is None:
        return None
    try:
        given = tuple(_fold(arg) for arg in (*call.args, *(word.value for word in call.keywords)))
        output = _fold(sides[1 - sides.index(call)])
        return _text(given[0] if len(given) == 1 else given), _text(output)
    except (_Unknown, RecursionError):
        return None


def _side(text: str) -> str:
    """What is longer than a program is in none."""
    return _text(text) if len(text) <= MOST else ""


def _text(value: object, room: int = MOST) -> str:
    """One spelling for what means the same: words of a text, items of a list, a number as text. Raises _Unknown for
    what is longer than `room`."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        made = " ".join(value.split())
    elif isinstance(value, list | tuple | dict):
        parts: list[str] = []
        left = room
        for item in value:
            parts.append(_text(item, left))
            left -= len(parts[-1]) + 1
        made = " ".join(parts)
    else:
        made = str(value) if not isinstance(value, int) or abs(value) < 10**400 else ""
    if len(made) > room:
        raise _Unknown
    return made


def _is_rich(text: str, told: str) -> bool:
    """Whether a text would hardly stand in a program that has not seen it: words alone are names of outcomes."""
    words = text.split()
    numbers = sum(any(map(str.isdigit, word)) for word in words)
    return len(text) >= RICH and 2 * numbers > len(words) and text not in told and len(set(text)) > 2


def _held(constants: Iterable[str], outputs: set[str], samples: set[str], told: str) -> list[str]:
    """Expected outputs among the constants: one of several words that is a sample's, or several of any test. One
    that is no sample may be a special case."""
    rich = {output for output in outputs if _is_rich(output, told)}
    texts = {text for text in constants if len(text) >= RICH}
    found = sorted(rich & texts)
    if len(found) > 1 or any(" " in output for output in samples.intersection(found)):
        return found
    # A long text may hold them all, one behind the other.
    inside = sorted(output for output in rich if any(output in text for text in texts if len(text) > 2 * len(output)))
    return inside if len(inside) >= SEVERAL else []


def _known(table: dict[str, str], inputs: dict[str, str]) -> int:
    """Entries of a table that are tests with their answers; 0 for a table that is no table of tests."""
    hits = sum(inputs.get(given) == answer for given, answer in table.items())
    if hits < SEVERAL or hits < 0.75 * len(table) or len({table[given] for given in table}) < 2:
        return 0
    numbers = sorted(int(given) for given in table if given.lstrip("-").isdigit())
    is_range = len(numbers) == len(table) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return 0 if is_range and numbers[0] in (0, 1) else hits


# ── the program ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(tree: ast.Module) -> tuple[set[str], list[dict[str, str]], dict[str, str]]:
    """All constants, tables from constant to constant, and what comparisons with a constant lead to."""
    constants: set[str] = set()
    room = 20 * MOST  # characters of constants that are kept
    tables: list[dict[str, str]] = []
    chains: dict[str, str] = {}
    names: dict[str, Any] = {}
    for node in islice(ast.walk(tree), NODES):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            try:
                names[name] = _Unknown if name in names else _fold(node.value, names)
            except _Unknown:
                names[name] = _Unknown
        if isinstance(node, ast.expr):
            made, table = _spelled(node, names)
            room -= sum(map(len, made))
            if room < 0:
                break
            constants.update(made)
            tables += [table] if table else []
        if isinstance(node, ast.If):
            _chain(chains, _asked(node.test, names), node.body, names)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                given = [case.pattern.value] if isinstance(case.pattern, ast.MatchValue) else []
                _chain(chains, [text for one in given if (text := _folded(one, names)) is not None], case.body, names)
        elif isinstance(node, ast.IfExp) and (answer := _folded(node.body, names)) is not None:
            chains.update(dict.fromkeys(_asked(node.test, names), answer))
        for body in (getattr(node, part, None) for part in ("body", "orelse")):
            if isinstance(body, list) and (said := _printed(body, names)):
                constants.add(said)
    return constants, tables, chains


def _spelled(node: ast.expr, names: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The texts that an expression amounts to, and the table that it is; none where it is no constant."""
    try:
        value = _fold(node, names)
        table = {_text(key): _text(item) for key, item in value.items()} if isinstance(value, dict) else {}
        return [_text(value), *table.values()], table
    except _Unknown:
        return [], {}


def _asked(test: ast.expr, names: dict[str, Any]) -> list[str]:
    """What a condition compares with, all parts of an `and` together."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    found = []
    for part in parts:
        if isinstance(part, ast.Compare) and len(part.ops) == 1 and isinstance(part.ops[0], ast.Eq):
            found += [text for side in (part.left, part.comparators[0]) if (text := _folded(side, names)) is not None]
    return [" ".join(found)] if found else []


def _chain(chains: dict[str, str], given: list[str], body: list[ast.stmt], names: dict[str, Any]) -> None:
    if given and (answer := _answer(body, names)) is not None:
        chains.update(dict.fromkeys(given, answer))


def _answer(body: list[ast.stmt], names: dict[str, Any]) -> str | None:
    """The constant that a branch prints, gives back or puts into a name."""
    if (printed := _printed(body, names)) is not None:
        return printed
    first = body[0]
    value = first.value if isinstance(first, ast.Return | ast.Assign) else None
    return None if value is None else _folded(value, names)


def _printed(body: list[ast.stmt], names: dict[str, Any]) -> str | None:
    """What prints of constants in a row amount to."""
    parts: list[str] = []
    for one in body:
        call = one.value if isinstance(one, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
            continue
        if (call.func.id if isinstance(call.func, ast.Name) else call.func.attr) not in ("print", "write"):
            continue
        texts = [_folded(arg, names) for arg in call.args]
        if None in texts:
            return None
        parts += [text for text in texts if text is not None]
    return _text(" ".join(parts)) if parts else None


def _folded(node: ast.expr, names: dict[str, Any]) -> str | None:
    try:
        return _text(_fold(node, names))
    except _Unknown:
        return None


def _by_digest(tree: ast.Module) -> bool:
    """Whether a hash decides by constants: compared with one, or looked up among them."""
    hashed: set[str] = set()

    def is_hash(node: ast.AST) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                name = part.func.id if isinstance(part.func, ast.Name) else getattr(part.func, "attr", "")
                if name in _HASHES:
                    return True
            if isinstance(part, ast.Name) and part.id in hashed:
                return True
        return False

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_hash(node.value):
            hashed |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    tables = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and len(node.value.keys) > 1
        and all(isinstance(key, ast.Constant) for key in node.value.keys)
        for target in node.targets
        if isinstance(target, ast.Name)
    }  # fmt: skip

    def is_table(node: ast.AST) -> bool:
        return isinstance(node, ast.Dict) or (isinstance(node, ast.Name) and node.id in tables)

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and is_hash(node.left):
            other = node.comparators[0]
            rich = isinstance(other, ast.Constant) and len(str(other.value)) >= RICH
            if rich or is_table(other):
                return True
        if isinstance(node, ast.Subscript) and is_table(node.value) and is_hash(node.slice):
            return True
        get = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
        if get and is_table(node.func.value) and node.args and is_hash(node.args[0]):  # type: ignore[attr-defined]
            return True
    return False


# ── constants ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fold(node: ast.expr, names: dict[str, Any] | None = None) -> Any:
    """The value of an expression that is made of constants alone. Raises _Unknown."""
    value = _folding(node, names or {})
    if isinstance(value, str | bytes | list | tuple | dict | set) and len(value) > MOST:
        raise _Unknown
    return value


def _folding(node: ast.expr, names: dict[str, Any]) -> Any:
    def fold(part: ast.expr) -> Any:
        return _fold(part, names)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if names.get(node.id, _Unknown) is not _Unknown:
            return names[node.id]
        case ast.List():
            return [fold(item) for item in node.elts]
        case ast.Tuple():
            return tuple(fold(item) for item in node.elts)
        case ast.Set():
            return [fold(item) for item in node.elts]
        case ast.Dict():
            if None in node.keys:
                raise _Unknown
            keys = [fold(key) for key in node.keys if key is not None]
            return dict(zip(map(_hashable, keys), map(fold, node.values), strict=True))
        case ast.JoinedStr():
            return "".join(_text(fold(part)) for part in node.values)
        case ast.FormattedValue():
            return fold(node.value)
        case ast.UnaryOp() if isinstance(node.op, ast.USub):
            value = fold(node.operand)
            if isinstance(value, int | float):
                return -value
        case ast.BinOp():
            return _two(node.op, fold(node.left), fold(node.right))
        case ast.Subscript():
            return _try(lambda: fold(node.value)[_slice(node.slice, fold)])
        case ast.Call():
            return _called(node, fold)
    raise _Unknown


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        raise _Unknown
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def _slice(node: ast.expr, fold: Callable[[ast.expr], Any]) -> Any:
    if isinstance(node, ast.Slice):
        return slice(*(None if part is None else fold(part) for part in (node.lower, node.upper, node.step)))
    return fold(node)


def _two(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Add) and type(left) is type(right) and isinstance(left, str | bytes | list | tuple):
        return left + right
    sizes = isinstance(left, str | bytes | list | tuple) and isinstance(right, int)
    if isinstance(op, ast.Mult) and sizes and 0 <= right <= MOST // max(len(left), 1):
        return left * right
    if isinstance(left, int) and isinstance(right, int) and max(abs(left), abs(right)) < 10**30:
        if isinstance(op, ast.Add):
            return left + right
        if isinstance(op, ast.Sub):
            return left - right
        if isinstance(op, ast.Mult):
            return left * right
    raise _Unknown


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "b64decode": base64.b64decode,
    "b85decode": base64.b85decode,
    "b32decode": base64.b32decode,
    "b16decode": base64.b16decode,
    "a85decode": base64.a85decode,
    "urlsafe_b64decode": base64.urlsafe_b64decode,
    "unhexlify": binascii.unhexlify,
    "fromhex": bytes.fromhex,
    "decompress": lambda data: zlib.decompressobj().decompress(data, MOST),
    "bytes": lambda data: bytes(data) if isinstance(data, list | tuple) else data,
    "bytearray": lambda data: bytes(data) if isinstance(data, list | tuple) else data,
    "str": lambda value: _text(value),
    "int": lambda value: int(value) if len(str(value)) < 400 else 0,
    "list": list,
    "tuple": tuple,
    "chr": chr,
    "reversed": lambda value: list(value)[::-1],
}
_METHODS = ("split", "strip", "rstrip", "lstrip", "splitlines", "replace", "lower", "upper", "decode", "encode", "join",
            "swapcase", "title")  # fmt: skip


def _called(node: ast.Call, fold: Callable[[ast.expr], Any]) -> Any:
    """A call that makes a constant of constants."""
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Name):
        return _each(node.args[0].id, fold(node.args[1]))
    if isinstance(node.func, ast.Attribute) and name in _METHODS and not node.keywords:
        base, given = fold(node.func.value), [_items(arg, fold) for arg in node.args]
        # what is put between others, or in their place, may be as long as they are many
        if isinstance(base, str | bytes) and (1 + len(base)) * (1 + sum(map(_size, given))) <= 50 * MOST:
            return _try(lambda: getattr(base, name)(*given))
        raise _Unknown
    if name in _DECODERS and len(node.args) == 1 and not node.keywords:
        return _try(lambda: _DECODERS[name](fold(node.args[0])))
    raise _Unknown


def _items(node: ast.expr, fold: Callable[[ast.expr], Any]) -> Any:
    """An argument; of `chr(x) for x in ...` the list that it makes."""
    if isinstance(node, ast.GeneratorExp | ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
        made = node.elt
        if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and len(made.args) == 1:
            return _each(made.func.id, fold(node.generators[0].iter))
    return fold(node)


def _each(name: str, items: Any) -> list[Any]:
    if name not in _DECODERS or not isinstance(items, list | tuple | str | bytes):
        raise _Unknown
    made: list[Any] = _try(lambda: [_DECODERS[name](item) for item in items])
    return made


def _size(value: Any) -> int:
    """Characters of a text, of a list of texts all of them."""
    if isinstance(value, list | tuple):
        return sum(len(item) + 1 if isinstance(item, str | bytes) else 1 for item in value)
    return len(value) if isinstance(value, str | bytes) else 1


def _try(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (TypeError, ValueError, KeyError, IndexError, OverflowError, zlib.error, UnicodeError, MemoryError):
        raise _Unknown from None
