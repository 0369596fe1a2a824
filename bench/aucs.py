"""How often the interval of a pooled AUC holds the truth, where programs come in tasks.

    python bench/aucs.py [--runs 500]

Draws tasks whose pass rates are skewed and whose programs' scores resemble each other, and compares the interval of
`stats.auc` over all pairs with auc -+ t * se of the clustered standard error, which it replaced.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stats

Column = NDArray[Any]
CASES = ((0.3, 1.5, 12), (0.072, 0.795, 24), (1.0, 1.0, 8))  # Beta distribution of pass rates, programs a task
TASKS = (15, 30, 74, 223)


def drawn(rng: np.random.Generator, a: float, b: float, n: int, programs: int) -> tuple[Column, Column, Column]:
    task = np.repeat(np.arange(n), rng.integers(max(2, programs // 2), programs * 3 // 2 + 1, n))
    passed = (rng.random(task.size) < rng.beta(a, b, n)[task]).astype(float)
    latent = rng.normal(0, 0.7, n)[task] + passed + rng.normal(0, 1, task.size)
    return np.round(1 / (1 + np.exp(-latent)), 2), passed, task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    from scipy.special import stdtrit

    print(f"{'rates':<20}{'programs':>9}{'tasks':>7}{'interval':>10}{'t * se':>8}{'estimable':>11}")
    for a, b, programs in CASES:
        rng = np.random.default_rng(1)
        truth = np.mean([stats.auc(*drawn(rng, a, b, 2000, programs)).auc for _ in range(4)])
        for n in TASKS:
            held = plain = known = 0
            for _ in range(runs):
                got = stats.auc(*drawn(rng, a, b, n, programs))
                if np.isfinite(got.lo):
                    known += 1
                    held += bool(got.lo <= truth <= got.hi)
                    plain += bool(abs(got.auc - truth) <= float(stdtrit(n - 1, 0.975)) * got.se)
            rates = f"Beta({a:g}, {b:g})"
            print(f"{rates:<20}{programs:>9}{n:>7}{held / known:>10.1%}{plain / known:>8.1%}{known / runs:>11.1%}")


if __name__ == "__main__":
    main()
