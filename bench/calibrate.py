"""How long a calibration takes: 2,000 saved programs on 60 tests each, by the real command.

    python bench/calibrate.py [--programs 2000] [--milliseconds 0] [--keep FOLDER]

Lays out a finished run of made-up tasks in a temporary folder: lists to sort and sum, 5 private and 60 generated tests
of up to 2,000 numbers, 24 programs a task, which work for so many more milliseconds a test. Every fourth is right, the
others go wrong from some size up. Then it runs calibrate.py, and says how much of the time was the programs' own.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from records import Log  # noqa: E402
from tasks import load  # noqa: E402
from tasksets.task import card  # noqa: E402
from tests.support.lay_out import attempt, base, config  # noqa: E402

PER_TASK = 24
PROGRAM = """import sys
import time
data = sys.stdin.read().split()
n, numbers = int(data[0]), list(map(int, data[1:]))
numbers.sort()
end = time.process_time() + {seconds}
total = 0
while time.process_time() < end:
    total = sum(x * i for i, x in enumerate(numbers)) % {modulus}
total = sum(x * i for i, x in enumerate(numbers)) % {modulus}
print(total if n <= {limit} else total + 1)  # {number}
"""


def rows(n: int) -> list[dict]:
    luck = random.Random(0)
    made = []
    for k in range(n):
        modulus = 10**9 + 7 + k

        def test(size: int, modulus: int = modulus) -> list[str]:
            numbers = [luck.randrange(10**6) for _ in range(size)]
            right = sum(x * i for i, x in enumerate(sorted(numbers))) % modulus
            return [f"{size}\n{' '.join(map(str, numbers))}\n", f"{right}\n"]

        sizes = [luck.randrange(1, 2000) for _ in range(60)]
        made.append(
            {
                "id": f"t{k:03}",
                "statement": f"Sort and sum, modulo {modulus}.",
                "kind": "stdio",
                "visible": [test(3)],
                "hidden": [test(luck.randrange(1, 2000)) for _ in range(5)],
                "spare": [test(size) for size in sizes],
            }
        )
    return made


def lay(folder: Path, programs: int, seconds: float) -> Path:
    file, out = folder / "tasks.jsonl", folder / "out"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows(-(-programs // PER_TASK))))
    with Log(out) as log:
        log.write_json("config.json", config(tasks=str(file), revision=None))
        for k, task in enumerate(load(str(file))):
            log.add_card(card(task))
            for a in base(task.id):
                log.add(a)
            modulus = task.statement.split()[-1].rstrip(".")
            for i in range(min(PER_TASK, programs - k * PER_TASK)):
                limit = 2000 if i % 4 == 0 else 80 * i
                code = PROGRAM.format(seconds=seconds, modulus=modulus, limit=limit, number=i)
                log.add(attempt(task.id, "resample", 0, i // 8, i % 8, code=code, task_sha=task.digest))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--milliseconds", type=float, default=0.0, help="CPU of a program on a test beyond its work")
    parser.add_argument("--keep", help="lay the run out here, and leave it (default: a temporary folder)")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(a.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        out = lay(folder, a.programs, a.milliseconds / 1000)
        began = time.monotonic()
        subprocess.run([sys.executable, str(ROOT / "calibrate.py"), "--out", str(out)], check=True)
        wall = time.monotonic() - began
        checks = [json.loads(line) for line in (out / "checks.jsonl").read_text().splitlines()]
    tests = sum(len(check["letters"]) - check["letters"].count(".") for check in checks)
    own = sum(check["cpu_seconds"] for check in checks)
    print(f"\n{a.programs:,} programs, {tests:,} tests: {wall:.0f} s, {tests / wall:,.0f} tests a second")
    print(f"{own:.0f} CPU seconds were the programs' own, with the start of their Python")


if __name__ == "__main__":
    main()
