"""The pictures of the report in the README and the docs.

    python bench/screenshot.py out docs/report.png [--dark] [--width 1000]
    python bench/screenshot.py out docs/task.png --at task=1514_C --width 1280

Opens report.html of a run folder in headless Chromium, photographs its first screen, or the task at an address of the
page, and writes it with 256 colours.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.browser import Browser  # noqa: E402

HEIGHT, OF_A_TASK = 1700, 1250  # CSS pixels
OPENED = """(async () => {
  while (!document.querySelector('[role=tab]')) await new Promise((f) => setTimeout(f, 10));
  await new Promise((f) => setTimeout(f, 300)); })()"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--at", default="", help="what follows # in the address of a task")
    parser.add_argument("--width", type=int, default=1000)
    a = parser.parse_args()
    from PIL import Image  # comes with matplotlib

    with Browser() as browser:
        page = browser.open(a.run / "report.html", a.width, OF_A_TASK if a.at else HEIGHT, a.dark, a.at)
        if a.at:
            page.run(OPENED)
        data = page.picture(a.picture)
    picture = Image.open(io.BytesIO(data)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(a.picture, optimize=True)
    print(f"{a.picture}: {a.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
