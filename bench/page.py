"""How quick report.html is in a real browser: its size, its first paint, a filter, a task opened.

    python bench/page.py out [--width 400]

Opens the page of a run folder in headless Chromium, three times, from disk. The promise, held against the medians:
under 8 MB, first paint under 1 s, a filter under 100 ms, a task under 200 ms; at 400 pixels under 6,000 pixels high.
Exits 1 where it is broken. Left out: how long the page takes to make (bench/report.py).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.browser import Browser  # noqa: E402

REPEATS = 3
PAINT = "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]"
# Until the frame after the change has been drawn.
TIMED = """(async () => { const began = performance.now(); %s;
  await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
  return performance.now() - began; })()"""
FILTER = """(() => { const b = document.getElementById('f-group'); b.value = '%s';
  b.dispatchEvent(new Event('input', { bubbles: true })); })()"""
OPEN = """document.querySelectorAll('.open-task')[%d].click();
  while (document.querySelectorAll('[role=tab]').length === before) await new Promise((f) => setTimeout(f))"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    a = parser.parse_args()
    path = a.run / "report.html"
    took: dict[str, list[float]] = {"first paint": [], "a filter": [], "a task": [], "height": []}
    for _ in range(REPEATS):
        with Browser() as browser:
            p = browser.open(path, width=a.width)
            p.run("new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
            took["first paint"].append(p.run(PAINT))
            took["height"].append(p.run("document.documentElement.scrollHeight"))
            for group in ("rescued", "disagree", ""):
                took["a filter"].append(p.run(TIMED % (FILTER % group)))
            for i in range(3):
                before = "const before = document.querySelectorAll('[role=tab]').length; "
                took["a task"].append(p.run(TIMED % (before + OPEN % i)))
            assert p.complaints() == [], p.complaints()
    found = {name: statistics.median(values) for name, values in took.items()}
    rows = [("size", path.stat().st_size / 1e6, "MB", 8.0), ("first paint", found["first paint"], "ms", 1000.0)]
    rows += [("a filter", found["a filter"], "ms", 100.0), ("a task", found["a task"], "ms", 200.0)]
    if a.width <= 600:
        rows.append(("height", found["height"], "px", 6000.0))
    for name, value, unit, limit in rows:
        print(f"{name:<12}{value:>8.1f} {unit:<3}(promised: under {limit:,.0f})")
    return int(any(value >= limit for _, value, _, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
