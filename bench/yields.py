"""How often the interval of rescues a token holds the truth, and what the arms' difference at equal tokens is worth.

    python bench/yields.py [--runs 2000]

Draws arms that stop at their first pass, on all-fail tasks of the published spread; a draw costs the same on a task and
differs between tasks (log-normal, sd .6). Compared: the interval of estimators/ratios.py, and the percentiles of a
bootstrap over tasks.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import truths
from estimators.ratios import per_unit

ROUNDS, PARTICLES, RESAMPLES, SPREAD = 3, 8, 499, 0.6


def arm(rng: np.random.Generator, shape: tuple[int, int], rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Rescues and tokens; the chances of a draw are made so much smaller or larger that `rate` of the tasks pass."""
    p = truths.better(truths.all_fail(rng, *shape), rate - truths.A_RESCUED)
    hit = rng.random((ROUNDS, *shape)) < 1 - (1 - p) ** PARTICLES
    rescued = hit.any(axis=0)
    rounds = np.where(rescued, hit.argmax(axis=0) + 1, ROUNDS)
    return rescued.astype(float), rounds * PARTICLES * np.exp(SPREAD * rng.standard_normal(shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    print(f"{'rescued':>8}{'tasks':>7}{'here':>8}{'low':>7}{'high':>7}{'bootstrap':>11}")
    for rate in (0.03, 0.093, 0.2, 0.4):
        rng = np.random.default_rng(5)
        x, cost = arm(rng, (1, 1_000_000), rate)
        truth = x.mean() / cost.mean()
        for n in (20, 60, 220):
            x, cost = arm(rng, (runs, n), rate)
            ends = np.array([per_unit(a, b)[1] for a, b in zip(x, cost, strict=True)])
            low, high = ends[:, 0] > truth, ends[:, 1] < truth
            again = 0
            for a, b in zip(x[:500], cost[:500], strict=True):
                pick = rng.integers(0, n, (RESAMPLES, n))
                lo, hi = np.quantile(a[pick].sum(axis=1) / b[pick].sum(axis=1), [0.025, 0.975])
                again += lo <= truth <= hi
            held = 1 - low.mean() - high.mean()
            print(
                f"{rate:>8.1%}{n:>7}{held:>8.1%}{low.mean():>7.1%}{high.mean():>7.1%}{again / 500:>11.1%}", flush=True
            )


if __name__ == "__main__":
    main()
