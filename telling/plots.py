"""The page's plots: results in, an inline <figure> of matplotlib's SVG out.

Text stays text, colours become the CSS variables of page.html (so both colour schemes fit), ids are unique within a
page, and nothing depends on the day or the machine: equal results give equal bytes. matplotlib is imported when the
first plot is drawn.

Left out: what the figures mean (page.py, words.py), how they are estimated (measure.py).
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from figures.hill import BucketRow, Curve
from figures.plan import CONTROL
from figures.results import Climb, Rescues, Results
from telling.words import CONFIDENCE, SHARES, STAGES, comparisons, listed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Stand-ins that no plot uses for anything else; each becomes a CSS variable of page.html.
INK, MUTED, RULE, PAPER, ACCENT, SOFT = "#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05", "#0a0b06"
ARM = tuple(f"#0a0c0{i}" for i in range(8))
STEP = tuple(f"#0a0d0{i}" for i in range(5))
PALETTE = {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper", ACCENT: "accent", SOFT: "soft"}
PALETTE |= {colour: f"a{i}" for i, colour in enumerate(ARM)} | {colour: f"s{i}" for i, colour in enumerate(STEP)}
MARKERS = "osD^vP*X"
LINE: dict[str, Any] = {"markersize": 5, "linewidth": 1.8, "clip_on": False}  # a mark at 0 is drawn whole
BROKEN: dict[str, Any] = {"linestyle": (0, (2, 2)), "markerfacecolor": PAPER}


class Canvas(NamedTuple):
    figure: Figure
    axes: list[Axes]
    alt: str

    def svg(self) -> str:
        """An inline <figure>: text stays text, ids are unique in the page, colours are the page's, no date."""
        import matplotlib

        out = io.StringIO()
        salt = sha256(self.alt.encode()).hexdigest()[:8]
        quiet = {"Date": None, "Creator": None, "Format": None, "Type": None}
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
            self.figure.savefig(out, format="svg", transparent=True, metadata=quiet)
        text = out.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
        text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # it would hold for the whole page
        text = re.sub(r' id="[\w.]+_\d+"', "", text)  # figure_1, text_3, ...: named in every plot, used in none
        text = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", text)
        text = re.sub(
            r"<svg [^>]*?viewBox=\"([^\"]+)\"[^>]*>",
            rf'<svg viewBox="\1" role="img" aria-label="{html.escape(self.alt)}">',
            text,
            count=1,
        )
        for colour, name in PALETTE.items():
            text = text.replace(colour, f"var(--{name})")
        return f"<figure>{text.strip()}</figure>"


def canvas(alt: str, height: float, panels: int = 1, width: float = 7.4, share_y: bool = True) -> Canvas:
    """An empty plot of one or more panels in a row, with nothing on it that carries no information."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"font.size": 9, "axes.linewidth": 0.8}):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = list(figure.subplots(1, panels, sharey=share_y, squeeze=False)[0])
    for axis in axes:
        axis.set_facecolor("none")
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
        axis.spines["bottom"].set_color(RULE)
        axis.tick_params(colors=MUTED, labelcolor=MUTED, length=0, labelsize=8.5)
        axis.grid(axis="y", color=RULE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.xaxis.label.set_color(MUTED)
        axis.yaxis.label.set_color(MUTED)
    return Canvas(figure, axes, alt)


def _looks(arms: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each arm, the control first and grey, so that no arm is known by its colour alone."""
    others = [arm for arm in arms if arm != CONTROL]
    looks = {arm: (ARM[1 + i % (len(ARM) - 1)], MARKERS[1 + i % (len(MARKERS) - 1)]) for i, arm in enumerate(others)}
    return {CONTROL: (ARM[0], MARKERS[0]), **looks}


def _whole_axis(axis: Axes, values: Sequence[int]) -> None:
    axis.set_xticks(list(values))
    axis.set_xlim(min(values) - 0.4, max(values) + 0.4)


def base(r: Results) -> str:
    counts = r["p0_histogram"]
    plot = canvas(f"Bars: tasks by passes among their {len(counts) - 1} base attempts", 2.5)
    (axis,) = plot.axes
    bars = axis.bar(range(len(counts)), counts, width=0.7, color=[ACCENT, *[ARM[0]] * (len(counts) - 1)])
    axis.bar_label(bars, labels=[f"{n:,}" for n in counts], padding=2, color=INK, fontsize=9)
    axis.set_xticks(range(len(counts)))
    axis.locator_params(axis="y", integer=True)
    axis.set_xlabel("passes in the base group")
    axis.set_ylabel("tasks")
    axis.margins(y=0.12)
    return plot.svg()


def forest(r: Results) -> str:
    """The paired differences, the margin of equivalence, and how far runs of one arm differ by themselves."""
    rows = comparisons(r)
    if not rows:
        return ""
    looks, primary = _looks(rows), r["verdict"]["primary_metric"]
    name = "per-sample pass rate" if primary == "per_sample" else "rescue rate"
    plot = canvas(
        f"Difference of each arm from {CONTROL} in {name}, with {CONFIDENCE} intervals", 1.3 + 0.36 * len(rows)
    )
    (axis,) = plot.axes
    axis.grid(False)
    axis.axvline(0, color=MUTED, linewidth=0.8)
    margin = 100 * next(iter(rows.values()))["margin"]
    if margin:
        axis.axvspan(-margin, margin, color=SOFT, linewidth=0, zorder=0, label=f"margin ±{margin:g}")
    for band, style, said in (
        (r["noise"].get("band_t"), (0, (4, 3)), "noise, run means"),
        (r["noise"].get("band_within"), (0, (1, 2)), "noise, replicates"),
    ):
        if band and band < 1 and primary == "rescue_rate":  # wider than all rates there are, it says nothing
            half = 100 * band
            axis.axvline(-half, color=MUTED, linewidth=1, linestyle=style)
            axis.axvline(half, color=MUTED, linewidth=1, linestyle=style, label=f"{said} ±{half:.1f}")
    first = " (first run)" if r["verdict"].get("against_runs", 1) > 1 else ""
    intervals: dict[str, dict[str, Any]] = {
        f"{CONFIDENCE} interval": {"linewidth": 3.5, "solid_capstyle": "butt"},
        f"interval for equivalent{first}": {"linewidth": 0.9, "marker": "|", "markersize": 9},
    }
    for said, look in intervals.items():
        axis.plot([], [], color=MUTED, label=said, **look)
    for y, (arm, row) in enumerate(rows.items()):
        colour, marker = looks[arm]
        for (lo, hi), look in zip((row["interval"], row["equivalence_interval"]), intervals.values(), strict=True):
            if lo is not None and hi is not None:
                axis.plot([100 * lo, 100 * hi], [y, y], color=colour, **look)
        axis.plot([100 * (row["delta"] or 0)], [y], marker, color=colour, markersize=7)
    axis.set_yticks(range(len(rows)), list(rows), color=INK, fontsize=9.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel(f"points of {name}, arm minus {CONTROL}")
    legend = axis.legend(
        loc="upper left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, fontsize=8.5, borderaxespad=0
    )
    legend.remove()
    plot.figure.legend(
        handles=legend.legend_handles, loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, labelcolor=MUTED
    )
    return plot.svg()


def several(rows: Sequence[tuple[str, str, float, float | None, float | None]], name: str) -> str:
    """Differences from the control of several runs, an arm's runs below each other. rows: arm, run, points, ends."""
    if not rows:
        return ""
    looks = _looks(dict.fromkeys(arm for arm, *_ in rows))
    plot = canvas(
        f"Difference from {CONTROL} in {name} in each run, with {CONFIDENCE} intervals", 0.9 + 0.3 * len(rows)
    )
    (axis,) = plot.axes
    axis.grid(False)
    axis.axvline(0, color=MUTED, linewidth=0.8)
    for y, (arm, _, delta, lo, hi) in enumerate(rows):
        colour, marker = looks[arm]
        if lo is not None and hi is not None:
            axis.plot([lo, hi], [y, y], color=colour, linewidth=3, solid_capstyle="butt", alpha=0.7)
        axis.plot([delta], [y], marker, color=colour, markersize=7)
    labels = [f"{arm}, {run}" for arm, run, *_ in rows]
    axis.set_yticks(range(len(rows)), labels, color=INK, fontsize=9)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel(f"points of {name}, arm minus {CONTROL}")
    return plot.svg()


def rounds(r: Results) -> str:
    """Cumulative rescue rate by round: each arm before the control, both with Wilson bands."""
    ranges = {arm: row for arm, row in r["intervals"].items() if row["n"]}
    if not ranges:
        return ""
    others = [arm for arm in ranges if arm != CONTROL] or [CONTROL]
    looks = _looks(ranges)
    plot = canvas(
        f"Tasks rescued by the end of each round, for {listed(list(ranges))}, with {CONFIDENCE} bands", 2.6, len(others)
    )
    for axis, arm in zip(plot.axes, others, strict=True):
        for name in dict.fromkeys((CONTROL, arm)):
            if name in ranges:
                rates, band = _by_round(ranges[name])
                _curve(axis, rates, looks[name], name, band)
        axis.set_title(arm, fontsize=10, loc="left", color=INK)
        _whole_axis(axis, range(len(ranges[arm]["first_pass_in_round"])))
        axis.set_xlabel("round")
    plot.axes[0].set_ylim(bottom=0)
    plot.axes[0].set_ylabel("% of tasks rescued")
    _legend(plot, looks, ranges)
    return plot.svg()


def _by_round(row: Rescues) -> tuple[Sequence[tuple[float, float]], Sequence[tuple[float, float, float]]]:
    """(round, rate) and (round, lo, hi) in percent, cumulative."""
    import numpy as np

    from stats import proportion_ci

    rescued = np.cumsum(row["first_pass_in_round"])
    lo, hi = proportion_ci(rescued, np.full(len(rescued), row["n"]))
    rates = [(k, 100 * x / row["n"]) for k, x in enumerate(rescued)]
    return rates, [(k, 100 * a, 100 * b) for k, (a, b) in enumerate(zip(lo, hi, strict=True))]


def _curve(
    axis: Axes,
    rows: Sequence[tuple[float, float]],
    look: tuple[str, str],
    name: str,
    band: Sequence[tuple[float, float, float]] = (),
) -> None:
    """rows: (x, y). band: (x, lower end, upper end), drawn behind them."""
    colour, marker = look
    if band:
        at, low, high = zip(*band, strict=True)
        axis.fill_between(at, low, high, color=colour, alpha=0.13, linewidth=0)
    x, y = zip(*rows, strict=True)
    axis.plot(x, y, color=colour, marker=marker if len(x) <= 8 else None, label=name, **LINE)


def _legend(plot: Canvas, looks: Mapping[str, tuple[str, str]], arms: Iterable[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=looks[arm][0], marker=looks[arm][1], label=arm, **LINE) for arm in arms]
    plot.figure.legend(
        handles=handles, loc="outside upper left", ncols=len(handles), frameon=False, fontsize=9, labelcolor=INK
    )


def coverage(r: Results) -> str:
    curves = {arm: row for arm, row in r["coverage"].items() if row["n"]}
    if not curves:
        return ""
    looks = _looks(curves)
    plot = canvas(f"Share of tasks with a pass after 1 to {r['budget']['B']} samples, by arm", 2.9)
    (axis,) = plot.axes
    for arm, row in curves.items():
        rows = [(k, 100 * x) for k, x in enumerate(row["share"], 1) if x is not None]
        ends = enumerate(row["interval"] if arm == CONTROL else [], 1)
        band = [(k, 100 * lo, 100 * hi) for k, (lo, hi) in ends if lo is not None and hi is not None]
        _curve(axis, rows, looks[arm], arm, band)
        for at in range(r["budget"]["N"], len(rows) + 1, r["budget"]["N"]):
            axis.plot([rows[at - 1][0]], [rows[at - 1][1]], looks[arm][1], color=looks[arm][0], **LINE)
    axis.set_xlabel(f"samples a task (marks: a round is complete; band: {CONFIDENCE} for {CONTROL})")
    axis.set_ylabel("% of tasks with a pass")
    axis.set_ylim(bottom=0)
    axis.set_xlim(0.5, r["budget"]["B"] + 0.5)
    axis.set_xticks([1, *range(r["budget"]["N"], r["budget"]["B"] + 1, r["budget"]["N"])])
    _legend(plot, looks, curves)
    return plot.svg()


def one_axis(r: Results) -> str:
    """All tasks, from the first base attempt on: drawn, expected of fresh draws, and with each arm in their place."""
    found, group, budget = r["fresh"], r["budget"]["G"], r["budget"]["B"]
    curves = {arm: row for arm, row in r["coverage"].items() if row["n"]}
    if r["band"] != "all" or not curves or found["rescue"][-1] is None:
        return ""
    looks = _looks(curves)
    plot = canvas(f"Share of all tasks with a pass after 1 to {group + budget} draws: base group, fresh, arms", 3.1)
    (axis,) = plot.axes
    shares, ends = [*found["base"], *found["beyond"]], [*found["base_interval"], *found["beyond_interval"]]
    known = [(k, x, lo, hi) for k, (x, (lo, hi)) in enumerate(zip(shares, ends, strict=True), 1)]
    drawn = [(k, 100 * (x or 0)) for k, x, _, _ in known]
    band = [(k, 100 * (lo or 0), 100 * (hi or 0)) for k, _, lo, hi in known]
    at, low, high = zip(*band, strict=True)
    axis.fill_between(at, low, high, color=INK, alpha=0.08, linewidth=0)
    axis.plot(*zip(*drawn[:group], strict=True), color=INK, label="base group, as drawn", linewidth=1.8)
    dashes: dict[str, Any] = {
        "linewidth": 1.8,
        "linestyle": (0, (4, 2)),
        "label": f"fresh draws, expected ({CONFIDENCE} band)",
    }
    axis.plot(*zip(*drawn[group - 1 :], strict=True), color=INK, **dashes)
    failed = found["all_fail"] / found["n"]
    for arm, row in curves.items():
        rows = [(group, 100 * (1 - failed))]
        rows += [(group + k, 100 * (1 - failed + failed * x)) for k, x in enumerate(row["share"], 1) if x is not None]
        axis.plot(*zip(*rows, strict=True), color=looks[arm][0], label=arm, linewidth=1.2)
        axis.plot(*rows[-1], looks[arm][1], color=looks[arm][0], markersize=5, clip_on=False)
    axis.axvline(group, color=RULE, linewidth=0.8)
    axis.set_xlabel(f"draws a task (the first {group}: the base group)")
    axis.set_ylabel("% of all tasks with a pass")
    axis.set_ylim(bottom=0)
    axis.set_xlim(0.5, group + budget + 0.5)
    plot.figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5, labelcolor=INK)
    return plot.svg()


def climb(climb: Mapping[str, Climb]) -> str:
    others = [arm for arm in climb if arm != CONTROL] or list(climb)
    looks = _looks(climb)
    plot = canvas("Mean best-so-far fitness by round, each arm beside the control on the same tasks", 2.5, len(others))
    for axis, arm in zip(plot.axes, others, strict=True):
        rounds = [x for x in climb[arm]["rounds"] if x["active"]["tasks"]]
        for name in dict.fromkeys((CONTROL, arm)):
            rows = []
            for x in rounds:
                found = x["active"]["arm"] if name == arm else x["active"]["resample"]
                if found and found["best_fitness"] is not None:
                    rows.append((x["round"], 100 * found["best_fitness"]))
            if rows:
                _curve(axis, rows, looks[name], name)
        axis.set_title(arm, fontsize=10, loc="left", color=INK)
        if climb[arm]["rounds"]:
            _whole_axis(axis, [x["round"] for x in climb[arm]["rounds"]])
        axis.set_xlabel("round")
    plot.axes[0].set_ylim(bottom=0)
    plot.axes[0].set_ylabel("% of visible tests,\nbest so far")
    _legend(plot, looks, [arm for arm in (CONTROL, *others) if arm in climb])
    return plot.svg()


def hidden(climb: Mapping[str, Climb]) -> str:
    if not any(row["rounds"][0]["together"]["tasks"] for row in climb.values()):
        return ""  # no task is finished by every arm
    plot = canvas("By round: share of programs that pass every visible test, and every hidden one too", 2.5, len(climb))
    looks = _looks(climb)
    for axis, (arm, row) in zip(plot.axes, climb.items(), strict=True):
        at = [x["round"] for x in row["rounds"] if x["together"]["tasks"]]
        rounds = [row["rounds"][nth]["together"] for nth in at]
        shown, whole = ([100 * (x[key] or 0) for x in rounds] for key in ("all_visible_share", "passed_share"))
        colour, _ = looks[arm]
        axis.fill_between(at, whole, shown, color=colour, alpha=0.13, linewidth=0)
        axis.plot(at, shown, color=colour, marker="o", **LINE)
        axis.plot(at, whole, color=colour, marker="o", **LINE, **BROKEN)
        axis.set_title(arm, fontsize=10, loc="left", color=INK)
        _whole_axis(axis, [x["round"] for x in row["rounds"]])
        axis.set_xlabel("round")
    plot.axes[0].set_ylim(bottom=0)
    plot.axes[0].set_ylabel("% of programs")
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=INK, marker="o", label="every visible test", **LINE),
        Line2D([], [], color=INK, marker="o", label="and every hidden test", **LINE, **BROKEN),
    ]
    plot.figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=9, labelcolor=INK)
    return plot.svg()


def training_set(r: Results) -> str:
    moved = r["training_set"]
    plot = canvas(
        "Tasks by pass share: in the base group, with fresh draws, with refined ones", 0.9 + 0.42 * len(STAGES)
    )
    (axis,) = plot.axes
    axis.grid(False)
    whole = max(sum(moved[key].values()) for key, _ in STAGES)
    for y, (key, _) in enumerate(STAGES):
        left = 0
        for i, (part, _name) in enumerate(SHARES):
            n = moved[key][part]
            axis.barh(y, n, left=left, height=0.62, color=STEP[i], edgecolor=PAPER, linewidth=1)
            if n > 0.035 * whole:
                axis.text(left + n / 2, y, f"{n:,}", ha="center", va="center", color=INK, fontsize=9)
            left += n
    axis.set_yticks(range(len(STAGES)), [name for _, name in STAGES], color=INK, fontsize=9.5)
    axis.set_ylim(len(STAGES) - 0.5, -0.5)
    axis.set_xlabel("tasks")
    axis.spines["bottom"].set_visible(False)
    from matplotlib.patches import Patch

    names = ("no pass", "under 20%", "20 to 80%", "over 80%", "all pass")
    handles = [Patch(facecolor=STEP[i], label=name) for i, name in enumerate(names)]
    plot.figure.legend(handles=handles, loc="outside upper left", ncols=5, frameon=False, fontsize=9, labelcolor=INK)
    return plot.svg()


def hill(what: str, curve: Curve, noun: str = "program", of: str = "") -> str:
    """what: the score; noun: what has it; of: those that are meant, where a page has several curves of one score."""
    plot = canvas(f"Pass rate by bucket of {what}, with {CONFIDENCE} intervals{of and ': '}{of}", 2.7)
    (axis,) = plot.axes
    buckets(axis, curve["table"], ACCENT, MUTED)
    axis.set_xlabel(f"{what}, and {noun}s in the bucket")
    return plot.svg()


def buckets(axis: Axes, rows: Sequence[BucketRow], colour: str, muted: str) -> None:
    """A calibration curve: the pass rate of each bucket with its interval. colour, muted: of the marks, of "none"."""
    for i, row in enumerate(rows):
        rate, lo, hi = row["rate"], row["lo"], row["hi"]
        if rate is not None and lo is not None and hi is not None:
            axis.plot(
                [i, i], [100 * lo, 100 * hi], color=colour, linewidth=2.5, alpha=0.55, solid_capstyle="butt", zorder=1
            )
            axis.plot([i], [100 * rate], "o", color=colour, markersize=7, clip_on=False, zorder=3)
        else:
            axis.annotate("none", (i, 0), ha="center", va="bottom", color=muted, fontsize=8.5)
    axis.set_xticks(range(len(rows)), [f"{row['bucket']}\nn {row['n']:,}" for row in rows])
    axis.set_xlim(-0.5, len(rows) - 0.5)
    axis.set_ylim(bottom=0)
    axis.set_ylabel(f"% that pass, {CONFIDENCE} interval")
