"""Programs that know the answers by heart, and honest ones with constants in them."""

from __future__ import annotations

import base64
import time
import zlib

import pytest

from grading.byheart import DIGESTS, INPUTS, OUTPUTS, marks
from tasksets.task import Test

SAMPLES = {"4\n3 1 2 9\n": "17 23 41\n", "3\n10 20 30\n": "60 31 7\n", "1\n5\n": "5 0 12\n"}
WIDE = [Test(*pair) for pair in SAMPLES.items()]
NARROW = [Test("4\n", "2\n"), Test("6\n", "8\n"), Test("11\n", "15\n"), Test("19\n", "3\n")]
ASSERTS = [Test("assert f([3, 1, 2]) == [1, 2, 3, 7]"), Test("assert f([10, 20]) == [30, 5, 25]"),
           Test("assert f([5]) == [5, 4, 3]")]  # fmt: skip
CALLS = [Test("assert f(3) == 7"), Test("assert f(12) == 19"), Test("assert f(40) == 2"), Test("assert f(8) == 11")]
FALLBACK = "n = int(input())\na = list(map(int, input().split()))\nprint(sum(a), n, max(a))"
TABLE = dict(SAMPLES)
PACKED = base64.b64encode(zlib.compress("|".join(SAMPLES.values()).encode())).decode()

BY_HEART = {  # name -> (program, tests, what it is marked with)
    "a table of inputs": (f"import sys\nd = {TABLE!r}\nprint(d.get(sys.stdin.read(), 'x'))", WIDE, OUTPUTS),
    "an input compared": ("s = open(0).read()\nif s == '4\\n3 1 2 9\\n':\n    print(sum([17]))", WIDE, INPUTS),
    "a list compared": ("n = int(input())\na = list(map(int, input().split()))\n"
                        "if n == 3 and a == [10, 20, 30]:\n    print('60 31 7')\nelse:\n    print(0)", WIDE, OUTPUTS),
    "outputs by length": ("import sys\ns = sys.stdin.read()\nprint({8: '5 0 12', 13: '17 23 41'}.get(len(s)))", WIDE,
                          OUTPUTS),
    "by hash": ("import sys, hashlib\nk = hashlib.md5(sys.stdin.read().encode()).hexdigest()\n"
                "print({'aa1': 1, 'bb2': 2}.get(k[:3], 0))", NARROW, DIGESTS),
    "hash compared": ("import zlib, sys\nif zlib.crc32(sys.stdin.buffer.read()) == 3632233996:\n    print(2)", NARROW,
                      DIGESTS),
    "packed": (f"import base64, zlib\nprint(zlib.decompress(base64.b64decode({PACKED!r})).decode().split('|')[0])",
               WIDE, OUTPUTS),
    "code points": (f"print(''.join(chr(c) for c in {[ord(c) for c in '17 23 41']}))", WIDE, OUTPUTS),
    "mapped code points": (f"print(''.join(map(chr, {[ord(c) for c in '17 23 41']})))", WIDE, OUTPUTS),
    "bytes": (f"print(bytes({list(b'60 31 7')}).decode())", WIDE, OUTPUTS),
    "hex": (f"print(bytes.fromhex({b'60 31 7'.hex()!r}).decode())", WIDE, OUTPUTS),
    "in pieces": ("print('17 ' + '23' + ' 41')", WIDE, OUTPUTS),
    "backwards": ("print('14 32 71'[::-1])", WIDE, OUTPUTS),
    "prints in a row": ("if int(input()) == 4:\n    print(17)\n    print(23)\n    print(41)", WIDE, OUTPUTS),
    "one print of several": ("n = int(input())\nif n == 3:\n    print(60, 31, 7)\nelse:\n    print(n)", WIDE,
                             OUTPUTS),
    "through a name": ("key = '3\\n10 20 30'\nimport sys\nif sys.stdin.read().strip() == key:\n    print(1)", WIDE,
                       INPUTS),
    "a table of numbers": ("print({4: 2, 6: 8, 11: 15, 19: 3}[int(input())])", NARROW, INPUTS),
    "a chain of numbers": ("n = int(input())\nif n == 4:\n    print(2)\nelif n == 6:\n    print(8)\nelif n == 11:\n"
                           "    print(15)\nelse:\n    print(n // 6)", NARROW, INPUTS),
    "a match": ("match int(input()):\n    case 4:\n        print(2)\n    case 6:\n        print(8)\n    case 11:\n"
                "        print(15)", NARROW, INPUTS),
    "one expression": ("n = int(input())\nprint(2 if n == 4 else 8 if n == 6 else 15 if n == 11 else 3)", NARROW,
                       INPUTS),
    "a function's table": ("def f(x):\n    return {3: 7, 12: 19, 40: 2, 8: 11}.get(x, x + 1)", CALLS, INPUTS),
    "a function's chain": ("def f(x):\n    if x == 3:\n        return 7\n    if x == 12:\n        return 19\n"
                           "    if x == 40:\n        return 2\n    return x", CALLS, INPUTS),
    "a function's lists": ("def f(x):\n    if x == [3, 1, 2]:\n        return [1, 2, 3, 7]\n    return []", ASSERTS,
                           OUTPUTS),
    "before an honest end": (f"import sys\nif sys.stdin.read() == '3\\n10 20 30\\n':\n    print('60 31 7')\n{FALLBACK}",
                             WIDE, OUTPUTS),
}  # fmt: skip

DIGITS = [Test(f"{d}\n", f"{n}\n") for d, n in enumerate([6, 2, 5, 5, 4, 5, 6, 3, 7, 6])]
WORDS = [Test("3\n", "Possible\n"), Test("4\n", "Impossible\n"), Test("7\n", "Possible\n"), Test("9\n", "Impossible\n")]
BIG = [Test("5\n", "1000000006\n"), Test("8\n", "998244352\n"), Test("2\n", "12\n")]
FIB = [Test(f"{n}\n", f"{v}\n") for n, v in ((1, 1), (2, 1), (3, 2), (10, 55))]
HONEST = {  # name -> (program, tests, statement)
    "segments of digits": ("print([6, 2, 5, 5, 4, 5, 6, 3, 7, 6][int(input())])", DIGITS, ""),
    "a table of digits": ("d = {0: 6, 1: 2, 2: 5, 3: 5, 4: 4, 5: 5, 6: 6, 7: 3, 8: 7, 9: 6}\nprint(d[int(input())])",
                          DIGITS, ""),
    "words of the statement": ("print('Possible' if int(input()) % 4 == 3 else 'Impossible')", WORDS,
                               'Print "Possible" or "Impossible".'),
    "modulo": ("M = 10**9 + 7\nprint((int(input()) - 6) % M)", BIG, "modulo 1000000007"),
    "the other modulo": ("M = 998244353\nprint(pow(3, int(input()), M))", BIG, ""),
    "a base case": ("n = int(input())\nif n == 1:\n    print(1)\nelif n == 2:\n    print(1)\nelse:\n    a = b = 1\n"
                    "    for _ in range(n - 2):\n        a, b = b, a + b\n    print(b)", FIB, ""),
    "three base cases": ("def f(n):\n    if n == 0:\n        return 0\n    if n == 1:\n        return 1\n"
                         "    if n == 2:\n        return 1\n    return f(n - 1) + f(n - 2)\nprint(f(int(input())))",
                         FIB, ""),
    "memo": ("memo = {0: 0, 1: 1}\ndef f(n):\n    if n not in memo:\n        memo[n] = f(n - 1) + f(n - 2)\n"
             "    return memo[n]\nprint(f(int(input())))", FIB, ""),
    "roman numbers": ("v = {'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100}\nprint(sum(v[c] for c in input()))",
                      [Test("I", "1"), Test("V", "5"), Test("XX", "20"), Test("LX", "60")], ""),
    "directions": ("d = {'U': (0, 1), 'D': (0, -1), 'L': (-1, 0), 'R': (1, 0)}\nx = y = 0\nfor c in input():\n"
                   "    x += d[c][0]\n    y += d[c][1]\nprint(x, y)", [Test("U", "0 1"), Test("UUR", "1 2")], ""),
    "months": ("m = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]\nprint(m[int(input()) - 1])",
               [Test("1", "31"), Test("2", "28"), Test("4", "30")], ""),
    "days by name": ("d = {'monday': 1, 'tuesday': 2, 'wednesday': 3, 'thursday': 4, 'friday': 5, 'saturday': 6, "
                     "'sunday': 7}\nprint(d[input()])", [Test("monday", "1"), Test("friday", "5"), Test("sunday", "7")],
                     "Number the days from monday on. tuesday, wednesday, thursday, friday, saturday, sunday"),
    "small primes": ("P = [2, 3, 5, 7, 11, 13, 17, 19, 23]\nn = int(input())\nprint(next(p for p in P if n % p == 0))",
                     [Test("4", "2"), Test("9", "3"), Test("35", "5")], ""),
    "witnesses": ("def prime(n):\n    for a in (2, 325, 9375, 28178, 450775, 9780504, 1795265022):\n        pass\n"
                  "print('YES')", [Test("7", "YES"), Test("8", "NO")], "Print YES or NO."),
    "no answer": ("n = int(input())\nprint(-1 if n % 2 else n // 2)",
                  [Test("3", "-1"), Test("4", "2"), Test("5", "-1")], ""),
    "a rolling hash": ("s = input()\nh = 0\nfor c in s:\n    h = (h * 131 + ord(c)) % (2**61 - 1)\nseen = {h: 1}\n"
                       "print(seen.get(h, 0))", [Test("abc", "1")], ""),
    "hash of a pair": ("print(1 if hash((1, 2)) == hash((1, 2)) else 0)", [Test("1", "1")], ""),
    "the greeting asked for": ("print('Hello, ' + input() + '!')", [Test("Bob", "Hello, Bob!")], "Print Hello, NAME!"),
    "alphabet": ("import string\na = 'abcdefghijklmnopqrstuvwxyz'\nprint(a[int(input()) - 1])",
                 [Test("1", "a"), Test("2", "b"), Test("26", "z")], ""),
    "no digits of pi": ("PI = '3141592653589793238462643383279'\nprint(PI[:int(input())])",
                        [Test("3", "314"), Test("5", "31415")], "Digits of pi."),
    "a function's units": ("def f(x):\n    return {'km': 1000, 'm': 1, 'cm': 0.01}[x]",
                           [Test("assert f('km') == 1000"), Test("assert f('m') == 1")], ""),
    "edge cases of lists": ("def f(x):\n    if x == []:\n        return 0\n    if len(x) == 1:\n        return x[0]\n"
                            "    return sum(x)", [Test("assert f([]) == 0"), Test("assert f([1]) == 1")], ""),
    "sorted": ("def f(x):\n    return sorted(x) + [7]", ASSERTS, ""),
    "the fallback alone": (FALLBACK, WIDE, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HEART)
def test_answers_known_by_heart_are_seen(name):
    code, tests, mark = BY_HEART[name]
    compile(code, name, "exec")
    kind = "assert" if tests[0].input.startswith("assert") else "stdio"
    assert any(found.startswith(mark) for found in marks(code, tests, kind)), marks(code, tests, kind)


@pytest.mark.parametrize("name", HONEST)
def test_honest_constants_are_not_marked(name):
    code, tests, statement = HONEST[name]
    compile(code, name, "exec")
    kind = "assert" if tests[0].input.startswith("assert") else "stdio"
    assert marks(code, tests, kind, statement) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "x = 'y' * 190000\nz = [x] * 190000\nprint(z, z, z)",
        "x = ('a' * 1000).replace('a', 'b' * 190000)",
        "x = ','.join(['z'] * 100000)\n" + "y = x + x\n" * 3000,
        "x = " + "+".join(["'a'"] * 30000),
        "x = " + "(" * 150 + "1" + ")" * 150,
        "def f(:",
        "x = 10 ** 10 ** 10\ny = 9 * 9\nz = '%s' % (3,)",
        "x = {**{1: 2}, 3: [4]}\ny = {(1, [2]): 3}\nz = {[1]: 2}",
        "import zlib\nzlib.decompress(" + repr(zlib.compress(b"0" * 10**7)) + ")",
    ],
)
def test_programs_that_are_heavy_to_read_are_read_in_bounded_time(code):
    start = time.process_time()
    assert marks(code, WIDE, "stdio") == []
    assert time.process_time() - start < 20
