"""The spread of pass rates over tasks, against scipy's distribution and optimiser and against the published runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import betabinom

from estimators.betabinomial import BetaBinomial, chance, fit

DATA = Path(__file__).parent / "data"
PUBLISHED = sorted(DATA.glob("published_results*.json"))


def log_likelihood(histogram, a, b):
    group = len(histogram) - 1
    return float(np.array(histogram) @ betabinom.logpmf(np.arange(group + 1), group, a, b))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_a_published_base_group_is_fitted_as_scipy_fits_it(path):
    histogram = json.loads(path.read_text())["p0_histogram"]
    found = fit(histogram)
    best = minimize(lambda logs: -log_likelihood(histogram, *np.exp(logs)), [-1.0, 0.0], method="Nelder-Mead")
    assert log_likelihood(histogram, *found) == pytest.approx(-best.fun, abs=1e-4)
    # As many all-fail tasks as there were, within one in forty.
    assert sum(histogram) * (1 - chance(found, 8)) == pytest.approx(histogram[0], rel=0.025)


def test_a_known_spread_is_found_again():
    share = betabinom.pmf(np.arange(9), 8, 0.072, 0.795)
    assert fit(np.round(share * 1e9)) == pytest.approx((0.072, 0.795), rel=1e-4)


def test_what_a_spread_foretells():
    found = BetaBinomial(0.072, 0.795)
    assert chance(found, 24, failed=8) == pytest.approx(0.093, abs=5e-4)
    assert chance(found, 144, failed=8) == pytest.approx(0.1888, abs=1e-4)
    assert 275 * (1 - chance(found, 8)) == pytest.approx(221.3, abs=0.05)
    assert 2 * (chance(found, 48, 8) - chance(found, 24, 8)) == pytest.approx(0.071, abs=1e-3)


@pytest.mark.parametrize("failed", [0, 3, 8])
@pytest.mark.parametrize("draws", [0, 1, 24])
def test_the_chance_is_that_of_scipys_distribution(draws, failed):
    a, b = 0.4, 1.1
    none = betabinom.pmf(0, failed + draws, a, b) / betabinom.pmf(0, failed, a, b)
    assert chance(BetaBinomial(a, b), draws, failed) == pytest.approx(1 - none, abs=1e-12)


def test_many_histograms_are_fitted_at_once_as_each_alone():
    rng = np.random.default_rng(0)
    many = rng.multinomial(30, betabinom.pmf(np.arange(9), 8, 0.3, 1.0), size=(4, 5))
    together = fit(many)
    assert together.a.shape == together.b.shape == (4, 5)
    apart = np.array([[fit(each) for each in row] for row in many])
    assert chance(together, 24, 8) == pytest.approx(chance(BetaBinomial(*np.moveaxis(apart, -1, 0)), 24, 8), rel=1e-3)


def test_what_a_histogram_cannot_tell():
    assert np.isnan(fit([0, 0, 0])).all()
    assert np.isnan(chance(fit([0, 0, 0]), 24, 2))
    assert fit([5, 0, 0]) == (0, 1) and chance(fit([5, 0, 0]), 24, 2) == 0  # nothing passed: nothing is foretold
    assert fit([0, 0, 5]) == (1, 0)
    assert chance(fit([10, 0, 0, 0, 10]), 24, 4) < 1e-4  # as a whole or not at all: what failed goes on failing
    alike = fit([256, 256, 96, 16, 1])  # 625 times binomial(4, .2)
    assert chance(alike, 1, 4) == pytest.approx(chance(alike, 1), rel=0.05)


@pytest.mark.parametrize("broken", [[5], [-1, 2], [1.5, 2], [np.nan, 1], 3.0])
def test_what_is_no_histogram_is_refused(broken):
    with pytest.raises(ValueError):
        fit(broken)


def test_no_draws_less_than_none():
    with pytest.raises(ValueError):
        chance(BetaBinomial(1, 1), -1)
    with pytest.raises(ValueError):
        chance(BetaBinomial(1, 1), 1, failed=-1)
