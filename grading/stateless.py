"""Can what one call of a program's functions does be felt by the next? Certainly not, or else perhaps.

Where it certainly cannot, supervise.py lets one process make several calls, which saves a fork for each. The question
is put to compiled code, which has nothing left of its author's spelling, and everything unknown counts as perhaps: a
name, an operation, another version's way of compiling. A perhaps costs time and changes no verdict.

A module passes when it binds functions, constants and harmless modules; when what else it runs leaves nothing bound (a
reply likes to end with examples); when its functions store nothing outside themselves, catch nothing (else running out
of stack or memory could pass unseen), and name nothing but their own module's names and what is listed here. What is
listed leads to no frame, no namespace, no attribute that can be set, and no mutable object that outlives a call. What
the library keeps, `forget` throws away; garbage that keeps memory can only make a later call run out of it, in plain
sight.

Addresses are no part of this: what a program makes of `id` or of an object's place in memory differs as it likes.
Standard library only; lives in the worker.
"""

from __future__ import annotations

import builtins
import collections
import itertools
import math
import operator
import sys
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRIED = (3, 14)  # the newest Python whose operations have been looked at: in a newer one everything is a perhaps
HARMLESS = frozenset("bisect collections copy functools heapq itertools math operator re string typing".split())

# What the code of a module may consist of: imports, definitions, constants, annotations.
_BINDING = """
    RESUME NOP CACHE EXTENDED_ARG LOAD_CONST LOAD_SMALL_INT LOAD_NAME LOAD_ATTR STORE_NAME POP_TOP MAKE_FUNCTION
    SET_FUNCTION_ATTRIBUTE IMPORT_NAME IMPORT_FROM BUILD_TUPLE BINARY_SUBSCR BINARY_OP UNPACK_SEQUENCE SWAP
    RETURN_VALUE RETURN_CONST"""
# What it may do besides, if all that it binds comes straight from one of the next: run examples.
_RUNNING = """
    PUSH_NULL PRECALL CALL CALL_KW KW_NAMES CALL_FUNCTION_EX LOAD_METHOD BUILD_LIST BUILD_SET BUILD_MAP
    BUILD_CONST_KEY_MAP LIST_EXTEND SET_UPDATE BUILD_STRING FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE
    COMPARE_OP IS_OP CONTAINS_OP UNARY_NEGATIVE UNARY_NOT BUILD_SLICE"""
_FIXED = "LOAD_CONST LOAD_SMALL_INT MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE IMPORT_NAME IMPORT_FROM"
_DEFAULTS = 3  # bits of the argument with which a function is made or changed: it has defaults, of whatever kind
_ANNOTATED = "LOAD_CONST MAKE_FUNCTION LOAD_CONST MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE"  # f, with how to annotate it
_ANNOTATE = 16  # the argument of the last one then, from Python 3.14 on
# What no function may do: bind outside itself, make a class, catch, and read attributes that are not in its names; or
# make a template, which is new and not worth a look.
_KEEPING = """
    STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR STORE_NAME DELETE_NAME LOAD_BUILD_CLASS SETUP_ANNOTATIONS
    IMPORT_STAR PUSH_EXC_INFO MATCH_CLASS BUILD_INTERPOLATION BUILD_TEMPLATE"""

# What functions may name: methods of these types, these built-in functions, and these members of harmless modules.
_TYPES = (
    str, list, dict, set, frozenset, tuple, int, float, complex, bytes, bytearray, range, slice,
    collections.deque, collections.Counter, collections.OrderedDict, collections.defaultdict,
)  # fmt: skip
_BUILTINS = """
    Ellipsis abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter float
    frozenset hash hex int isinstance issubclass iter len list map max min next oct ord pow print range repr
    reversed round set slice sorted str sum tuple zip"""
_MEMBERS = {
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "collections": "Counter OrderedDict defaultdict deque",
    "copy": "copy deepcopy",
    "functools": "cmp_to_key partial reduce",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "itertools": "from_iterable",
    "re": "compile escape findall finditer fullmatch match search split sub subn "
    "end endpos flags group groupdict groupindex groups lastgroup lastindex pattern pos span start string",
    "string": "ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation "
    "whitespace",
}
_ALL_MEMBERS = {"math", "itertools", "operator"}  # modules that are listed with all that is public
_LEADING_OUT = "attrgetter methodcaller format format_map"  # members of the above that are told an attribute in a text
# What a module may name besides: what annotations are made of.
_ANNOTATIONS = """
    __doc__ __future__ annotations collections.abc Any Callable DefaultDict Deque Dict FrozenSet Generator Generic
    Hashable Iterable Iterator List Literal Mapping MutableMapping MutableSequence NoReturn Optional Sequence Set Sized
    Tuple Type TypeVar Union"""
_PIECES = frozenset("__value__ __given__ __encode__ __decode__".split())
_MOST_NAMES = 255  # that one code may have: the argument of an operation is a byte, and more would take two operations

_Known = namedtuple(
    "_Known",
    "import_name import_from store_name store plain extended making annotated binding running fixed keeping names "
    "annotations attributes",
)
_known: Any = None


def learn() -> None:
    """Once, in a worker: what this Python calls all that."""
    global _known
    opmap = _opmap()

    def numbers(names: str) -> bytes:
        # a number past a byte is the compiler's own, and in no code
        return bytes(opmap[name] for name in names.split() if opmap.get(name, 256) < 256)

    def public(*holders: object) -> set[str]:
        return {name for holder in holders for name in dir(holder) if not name.startswith("_")}

    kinds = {name: value for name, value in vars(builtins).items() if isinstance(value, type)}
    errors = {name for name, kind in kinds.items() if issubclass(kind, BaseException)}
    names = public(*_TYPES, math, itertools, operator).union(_BUILTINS.split(), errors, HARMLESS)
    names = names.union(*(members.split() for members in _MEMBERS.values()))
    names -= set(_LEADING_OUT.split())
    # Attributes of whatever a function can get hold of: a module's own name is not to stand for one of these.
    attributes = {name for holder in (*_TYPES, *_leading_out()) for name in dir(holder)} - names
    keeping, store = numbers(_KEEPING), opmap["STORE_NAME"]
    _known = _Known(
        import_name=opmap["IMPORT_NAME"],
        import_from=opmap["IMPORT_FROM"],
        store_name=store,
        store=bytes([store]),
        plain=bytes(set(range(256)) - set(keeping)),
        extended=opmap["EXTENDED_ARG"],
        making=numbers("MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE"),
        annotated=numbers(_ANNOTATED),
        binding=numbers(_BINDING),
        running=numbers(_RUNNING),
        fixed=numbers(_FIXED),
        keeping=keeping,
        names=frozenset(names),
        annotations=frozenset(_ANNOTATIONS.split()),
        attributes=frozenset(attributes),
    )


def _opmap() -> dict[str, int]:
    """The numbers of all operations, without mapping one more library into every process."""
    try:  # Python 3.13 and later have them in a file of their own
        return dict(__import__("_opcode_metadata").opmap)
    except ImportError:
        pass
    kept = sys.modules.get("_opcode")
    sys.modules["_opcode"] = None  # type: ignore[assignment]
    try:
        return dict(__import__("opcode").opmap)
    finally:
        del sys.modules["opcode"], sys.modules["_opcode"]  # a program that wants them gets them whole
        if kept:
            sys.modules["_opcode"] = kept


def _leading_out() -> list[object]:
    """One of each kind of object from which a namespace can be reached."""

    async def coroutine() -> None: ...

    async def generator() -> Any:
        yield

    waiting, error = coroutine(), None
    waiting.close()
    try:
        raise ValueError
    except ValueError as raised:
        error = raised
    nothing: tuple[int, ...] = ()
    kinds = [
        learn,
        learn.__code__,
        (n for n in nothing),
        waiting,
        generator(),
        sys._getframe(),
        error,
        error.__traceback__,
    ]
    return [*kinds, type(sys)("any"), type, list[int], [].append, object.__init__, property]


def codes_in(code: Any) -> list[Any]:
    """The code and all codes in it, outermost first."""
    found = [code]
    for one in found:
        found += [const for const in one.co_consts if type(const) is type(code)]
    return found


def imported(codes: list[Any]) -> set[str]:
    """The top names of all modules that the codes import; of a code with more than 65,536 names perhaps others."""
    name_op, extended = _known.import_name, _known.extended
    found: set[str] = set()
    for one in codes:
        operations, arguments = one.co_code[::2], one.co_code[1::2]
        at = operations.find(name_op)
        while at >= 0:
            index = arguments[at]
            if at and operations[at - 1] == extended:
                index |= arguments[at - 1] << 8
            if index < len(one.co_names):
                found.add(one.co_names[index].partition(".")[0])
            at = operations.find(name_op, at + 1)
    return found


def _annotating(module: Any) -> list[Any]:
    """Of a module's functions those that the compiler has made, from Python 3.14 on, to annotate the others.

    They run when somebody reads the annotations of a function, for which no name is listed, and nobody else holds them.
    """
    operations, arguments = module.co_code[::2], module.co_code[1::2]
    load = _known.annotated[0]
    loaded = [arguments[at] for at, operation in enumerate(operations) if operation == load]
    found, at = [], operations.find(_known.annotated)
    while at >= 0:
        alone = loaded.count(arguments[at]) == 1 and operations[at - 1] != _known.extended
        if alone and arguments[at + 4] == _ANNOTATE:
            found.append(module.co_consts[arguments[at]])
        at = operations.find(_known.annotated, at + 1)
    return found


def is_known() -> bool:
    """May anything share a process under this Python? If not, asserts cost twice as much, and verdicts are the same."""
    return sys.version_info[:2] <= TRIED


def names_of(codes: list[Any]) -> frozenset[str] | None:
    """What functions of a module that keeps nothing, and calls of them, may name; None for any other module.

    codes: as codes_in gives them, the module's own first. The modules that it imports must have been loaded.
    """
    module, *functions = codes
    modules = imported(codes)
    if (
        not is_known()
        or not modules <= HARMLESS | {"__future__"}
        or any(len(one.co_names) > _MOST_NAMES for one in codes)
    ):
        return None
    operations, arguments = module.co_code[::2], module.co_code[1::2]
    more = operations.translate(None, _known.binding)
    if more.translate(None, _known.running):
        return None
    stored, aliases, barred, home = set(), set(), set(), ""
    for at, operation in enumerate(operations):
        if operation == _known.import_name:
            home = module.co_names[arguments[at]].partition(".")[0]
        elif operation == _known.store_name:
            stored.add(module.co_names[arguments[at]])
            if operations[at - 1] == _known.import_name:
                barred |= strange_in(home)
            elif operations[at - 1] == _known.import_from:
                barred |= strange_in(home) & {module.co_names[arguments[at]]}
            if operations[at - 1] not in _known.fixed:
                aliases.add(module.co_names[arguments[at]])  # may stand for what only annotations are made of
        elif more and operation in _known.making and arguments[at] & _DEFAULTS:
            return None
        elif operation == _known.import_from and (
            operations[at + 1] != _known.store_name or arguments[at + 1] != arguments[at]
        ):
            return None  # under another name it could not be told from the module's own
    if more and aliases:
        return None
    own = {name for name in stored if not name.startswith("__") and name not in _known.attributes}
    for one in modules:
        attributes = vars(sys.modules[one])
        own = {name for name in own if name not in attributes or name in _known.names}
    if set(module.co_names) - own - _known.names - _known.annotations:
        return None
    names = (_known.names | (own - aliases if modules & {"collections", "typing"} else own)) - barred
    for one in imported(functions):
        names -= strange_in(one)
    unread = list(map(id, _annotating(module)))
    return names if all(id(one) in unread or _keeps_nothing(one, names) for one in functions) else None


def strange_in(name: str) -> set[str]:
    """Names that are listed, and that this module has for something else: typing.Counter keeps what it is asked."""
    if name in _ALL_MEMBERS or name not in HARMLESS:
        return set()
    attributes = vars(sys.modules[name])
    found = _known.names.intersection(attributes).difference(_MEMBERS.get(name, "").split())
    return {one for one in found if one not in HARMLESS or attributes[one] is not sys.modules.get(one)}


def _keeps_nothing(code: Any, names: frozenset[str]) -> bool:
    operations = code.co_code[::2]
    return len(operations.translate(None, _known.keeping)) == len(operations) and names.issuperset(code.co_names)


def leaves_only_its_value(piece: Any, may_name: frozenset[str]) -> bool:
    """Does this piece of Python, run in a module whose functions may name this, leave `__value__` and no more?"""
    outer, *inner = codes_in(piece)
    own = may_name | _PIECES
    operations, names = outer.co_code[::2], outer.co_names
    if len(names) > _MOST_NAMES or not own.issuperset(names) or _known.import_name in operations:
        return False
    # of all that binds, one operation
    if operations.translate(None, _known.plain) != _known.store or (
        names[outer.co_code[2 * operations.index(_known.store) + 1]] != "__value__"
    ):
        return False
    return all(len(one.co_names) <= _MOST_NAMES and _keeps_nothing(one, own) for one in inner)


def forget() -> None:
    """After a call: throw away what the library has kept of it, compiled patterns."""
    patterns = sys.modules.get("re")
    if patterns:
        patterns.purge()
