"""The picture of the report in the README.

    python bench/screenshot.py out docs/report.png [--dark]

Opens report.html of a run folder in headless Chromium, photographs its first screen, and writes it with 256 colours.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.browser import Browser  # noqa: E402

WIDTH, HEIGHT = 1000, 1700  # CSS pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--dark", action="store_true")
    a = parser.parse_args()
    from PIL import Image  # comes with matplotlib

    with Browser() as browser:
        data = browser.open(a.run / "report.html", WIDTH, HEIGHT, a.dark).picture(a.picture)
    picture = Image.open(io.BytesIO(data)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    picture.save(a.picture, optimize=True)
    print(f"{a.picture}: {a.picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
