"""measure.py against the published runs, hand-made runs, planted stories, and runs that ended badly."""

from __future__ import annotations

import json

import pytest
from lay_out import COUNTS, lay_out, published

from measure import measure


def dumped(results: dict) -> str:
    """results.json as text; raises where a nan is in it."""
    return json.dumps(results, allow_nan=False, sort_keys=True)


# ── the published runs ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", COUNTS)
def test_a_published_run_measures_to_its_published_file(name: str) -> None:
    attempts, config = lay_out(name)
    results = measure(attempts, config)
    want = published(name)
    for key in ("tasks", "all_fail", "p0_histogram", "budget", "model", "seed"):
        assert results[key] == want[key], key
    for key in ("thinking", "max_tokens", "no_comments", "band", "family", "bundle"):
        assert key not in want or results[key] == want[key], key
    step = 100 / COUNTS[name]["n_arm_tasks"] + 0.1  # a lattice step, and both sides are rounded
    for arm, row in want["arms"].items():
        got = results["arms"][arm]
        assert {k: v for k, v in got.items() if k != "ci"} == {k: v for k, v in row.items() if k != "ci"}
        assert got["ci"] == pytest.approx(row["ci"], abs=step)
    for arm, row in want["deltas"].items():
        got = results["deltas"][arm]
        for key in ("vs", "delta", "verdict", "n_paired"):
            assert got[key] == row[key], (arm, key)
        assert got["ci95"] == pytest.approx(row["ci95"], abs=step)
        assert got["p_value"] == pytest.approx(row["p_value"], abs=0.02)
    assert {key: results["noise"][key] for key in want["noise"]} == want["noise"]
    dumped(results)
