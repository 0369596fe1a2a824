"""What results.json holds: a type for each of its keys, and what each number means.

    results: Results = measure(...)     everything that is known of a run
    results["climb"]["ring"]["moved"]   None where no round beside the first one can be compared

docs/results.md is made from the comments of this file. A share is a fraction in [0, 1], an interval is [lo, hi] at
95%, and what cannot be estimated is null; the keys of the published files (`Published`) alone are in points. Which
keys may be absent is said by NotRequired, and of a whole file from elsewhere by `total=False`.

Left out: how a figure comes about (measure.py and the rest of this folder), how it is told (words.py).
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from figures.costs import Arm as Arm
from figures.costs import ArmBill as ArmBill
from figures.costs import Bill as Bill
from figures.costs import Cost as Cost
from figures.costs import Efficiency as Efficiency
from figures.costs import EqualTokens as EqualTokens
from figures.costs import Gradings as Gradings
from figures.costs import Pair as Pair
from figures.costs import Requests as Requests
from figures.costs import Slots as Slots
from figures.costs import Stages as Stages

Task = str  # its id
Tag = str  # rating, split, your own
Value = str  # of a tag; ratings in bands
Outcome = str  # pass, wrong_answer, ...: the words of grading/grade.py
Group = str  # base, round0, an arm, or "resample re-runs"
Setting = str  # a setting, as config.json names it
Word = str  # better, worse, equivalent, inconclusive
PassShare = str  # of a task's samples: none, under_20, 20_to_80 (its ends included), over_80, all
Passability = str  # of a task: passable, disputed, unknown, unaudited
Reason = str  # why a task is disputed: several answers, float format, ... (docs/audit.md)


# ── the keys of the published files, in points ───────────────────────────────────────────────────────────────────────


class Budget(TypedDict):
    G: int  # attempts of a task's base group
    N: int  # particles of an arm
    R: int  # rounds of an arm
    B: int  # attempts of an arm on a task, N x R


class PublishedArm(TypedDict):
    rescue_rate: float | None  # points: tasks with a pass; null without a task
    ci: float | None  # points: half the width of the bootstrap interval; null under two tasks
    n: int  # tasks given to the arms on which this one owes nothing
    by_round: list[float | None]  # points: tasks with a pass up to each round
    samples: int  # attempts drawn on these tasks
    samples_per_task: float | None  # attempts: their mean; null without a task


class Delta(TypedDict):
    vs: Arm  # the control, resample
    delta: float | None  # points: the arm's rescue rate less the control's on the same tasks; null without a task
    ci95: Pair  # points: bootstrap; null under two tasks
    p_value: float | None  # of the exact McNemar test; null without a task
    verdict: str  # by the interval alone: a_better (the control), b_better, no_difference_detected, insufficient_data
    n_paired: int  # tasks that both finished


class Tokens(TypedDict):
    prompt: int  # tokens of prompts, where the server told them
    completion: int  # tokens of replies, where the server told them


class Clears(TypedDict):
    band_t: bool | None  # whether the arm's difference is larger than this band; null where runs alike span none
    band_within: bool | None  # as band_t


class Noise(TypedDict):
    runs: int  # runs of the control, the first and its re-runs; 0 without a control
    means: NotRequired[list[float | None]]  # points: rescue rate of each run; absent without a control
    run_std: NotRequired[float | None]  # points: sd of these means; null for one run, absent without a control
    band: NotRequired[float | None]  # points: band_t; null for one run, absent without a control
    n: NotRequired[int]  # tasks that every run finished; absent in the published files
    rescued: NotRequired[list[int]]  # tasks with a pass in each run; absent under two runs
    band_t: NotRequired[float | None]  # fraction: how far two runs lie apart by their seeds, from the run means; absent
    # under two runs
    std_between: NotRequired[float | None]  # fraction: sd of the run means; absent under two runs
    band_within: NotRequired[float | None]  # fraction: the same band from each task's replicates; null under two tasks,
    # absent under two runs
    std_within: NotRequired[
        float | None
    ]  # fraction: sd of a run mean, its tasks held fixed; null and absent as band_within
    q: NotRequired[float | None]  # chi-square: do runs differ by more than their tasks explain; null where no task's
    # runs differ, absent under two runs
    q_df: NotRequired[int]  # degrees of freedom of q; absent under two runs
    q_p: NotRequired[float | None]  # p-value of q; null and absent as q
    clears: NotRequired[dict[Arm, Clears]]  # which difference is larger than noise; empty under two runs, absent in the
    # published files


class Published(TypedDict):
    """The keys of the published files. Those that not all of the five hold are NotRequired; measure writes them all."""

    tasks: int  # tasks asked
    all_fail: int  # tasks whose whole base group failed
    p0_histogram: list[int]  # tasks by passes in their base group, 0 to G; tasks with a whole group alone
    budget: Budget  # attempts a task
    arms: dict[Arm, PublishedArm]  # rescues of each arm
    deltas: dict[Arm, Delta]  # each other arm against resample; empty without it
    noise: Noise  # runs of the control among themselves
    model: str | None  # as the server was asked for it
    seed: int  # of the run
    thinking: NotRequired[bool | str]  # false for off, true for on, else what was said
    max_tokens: NotRequired[int]  # tokens a reply may take
    no_comments: NotRequired[bool]  # whether prompts ask for programs without comments
    band: NotRequired[str]  # which all-fail tasks the arms were given: all, near-miss
    family: NotRequired[str]  # the task set
    bundle: NotRequired[int | None]  # problems of a task; null where the set is no mbpp-bundle
    calls: int  # attempts that the server answered
    truncated: int  # attempts cut at max_tokens
    tokens: Tokens  # of all attempts
    seconds: int | None  # wall seconds of all processes that asked; null = unknown
    rescued_rows: int  # distinct passing programs of the arms: rows of rescued.jsonl and rescued-unverified.jsonl


# ── the sections ─────────────────────────────────────────────────────────────────────────────────────────────────────


class AuditedArm(TypedDict):
    n: int  # tasks on which the arm owes nothing
    rescued: int  # tasks with a pass
    rate: float | None  # fraction: rescued / n; null without a task
    wilson: Pair  # fraction: Wilson's interval of the rate; null without a task
    delta: float | None  # fraction: the rate less the control's on the same tasks, of all its runs where the verdict is
    # drawn from those; null for the control, without one, and without a task
    interval: Pair  # fraction: of delta; null where it has no width to measure
    per_sample: float | None  # fraction: passes over samples, its mean over tasks; null where arms stopped


class AuditedSide(TypedDict):
    tasks: int  # tasks with a whole base group
    all_fail: int  # tasks of them whose whole base group failed
    share: float | None  # fraction: all_fail / tasks; null without a task
    given: int  # tasks given to the arms
    rescued: int  # tasks that some arm or re-run rescued
    arms: dict[Arm, AuditedArm]  # the rates of each arm


class Audited(TypedDict):
    """What audit.json says of the tasks of this run."""

    tasks: dict[Passability, int]  # tasks asked: passable, disputed, unknown, unaudited
    all_fail: dict[Passability, int]  # all-fail tasks likewise
    reasons: dict[Reason, int]  # disputed all-fail tasks by reason
    disputed: dict[Task, Reason]  # disputed all-fail tasks: the reason of each
    passed_all_the_same: int  # disputed tasks that some attempt passes, so that the dispute is about their references
    only_passable: bool  # whether the arms were given passable tasks alone
    with_disputed: AuditedSide  # every rate over all tasks
    without_disputed: AuditedSide  # and over those that are not disputed


class VerifiedRows(TypedDict):
    """Rescued programs on the spare tests of their tasks; all 0 until they have been run."""

    programs: int  # distinct programs of arms and re-runs that were looked at
    verified: int  # of them pass every spare test of their task, of which there is one at least
    without_spare_tests: int  # of them have no spare test that counts, and nothing marks them
    failed: int  # of them fail a spare test
    marked: int  # of them are marked and kept apart: they hold answers by heart, or pass no spare test
    cleared: NotRequired[int]  # of them are marked, pass every spare test, one of a new input among them, and are rows
    # all the same, with their flags; absent in older files
    disputed_tests: int  # times that a program failed a spare test which the task's own reference fails too


class Verdict(TypedDict):
    primary_metric: str  # rescue_rate, per_sample
    margin: float  # fraction: what equivalent means, the smaller of the one asked for and half of control_foretold
    margin_asked: NotRequired[float]  # fraction: the smallest difference worth acting on; absent in older files
    control_foretold: NotRequired[float | None]  # fraction: what the base group foretells of the control, by its fit; 0
    # where no base attempt passed; null without a task, absent in older files
    seeds: NotRequired[int]  # runs that the plan draws its verdict from; absent in older files
    against_runs: NotRequired[int]  # runs of the control that the arms are compared with; absent in older files
    planned: bool  # whether the plan came first and nothing in it has changed
    exploratory: list[str]  # sentences: why the verdict is exploratory; empty where planned
    arms: dict[Arm, Word]  # what each other arm is; empty where nothing was compared
    sentence: str  # what the plan's rule allows to be said


class Prediction(TypedDict):
    predicted: float  # fraction: the arm less the control by the primary metric, as somebody expected it
    before: bool  # whether it was written down before the first sample
    delta: float | None  # fraction: the difference that was found; null without a task
    interval: Pair  # fraction: of delta; null as that of the comparison
    ruled_out: bool | None  # whether its interval lies beside the prediction; null without one, or before the run ends


class Owing(TypedDict):
    tasks: int  # tasks on which attempts are owed
    owed_at_most: int  # attempts; fewer where a pass comes earlier
    refused: int  # tasks of whose round 0 the server refuses a prompt, so that no rate counts them; later: failed


class Incomplete(TypedDict):
    base_tasks: int  # tasks whose base group lacks an attempt
    base_owed: int  # attempts that base groups lack
    base_refused: int  # tasks of whose base group the server refuses a prompt, so that no rate counts them
    arms: dict[Arm, Owing]  # what each arm still owes
    noise_runs: list[Owing]  # what each re-run of the control still owes
    given: int  # tasks given to the arms
    duplicate_lines: int  # attempts that stand twice in attempts.jsonl; the first counts


class Hinted(TypedDict):
    """Of an arm that is shown a program known to be right, or a part of one."""

    without_reference: int  # tasks given to the arms that have none: it leaves them out
    alone: int  # tasks that it rescued and no other arm or re-run did


class Rescues(TypedDict):
    n: int  # tasks given to the arms on which this one owes nothing
    rescued: int  # tasks with a pass
    rate: float | None  # fraction: rescued / n; null without a task
    wilson: Pair  # fraction: Wilson's interval of the rate; null without a task
    bootstrap: Pair  # fraction: percentile bootstrap over tasks; null under two tasks
    first_pass_in_round: list[int]  # tasks whose first pass came in each round


class Against(TypedDict):
    """An arm against the control on the same tasks."""

    delta: float | None  # fraction: the arm less the control; null without a task
    interval: Pair  # fraction: of delta; null where it has no width to measure
    p: float | None  # two-sided; null without a task
    p_holm: float | None  # p adjusted over the arms; null as p
    n: int  # tasks that both finished
    control_rate: float | None  # fraction: what the control finds on these tasks; null without one
    margin: float  # fraction: the margin in force; 0 where no base attempt passed
    equivalence_interval: Pair  # fraction: the one that must lie inside the margin, of 90% or somewhat more; null where
    # not estimable
    verdict: Word  # better, worse, equivalent, inconclusive


class AgainstAll(Against):
    """An arm against the mean of all runs of the control: an exact test of which of a task's runs is the arm's."""

    runs: int  # runs of the control
    equivalent_up_to: int | None  # as that of the arm against the first run, which decides what is equivalent


class Paired(Against):
    n_arm_only: int  # tasks that the arm alone rescued
    n_resample_only: int  # tasks that the control alone rescued
    equivalent_up_to: int | None  # tasks on which they may disagree and be shown equivalent; null where none show it
    vs_all_resample: AgainstAll | None  # against the mean of all runs of the control; null under two runs, and where
    # the arms share a round with one of them


class WatchedArm(TypedDict):
    n: int  # tasks counted: in the order in which they are asked, up to the first on which something is owed
    waiting: int  # tasks that both finished and that are not counted yet, since an earlier one is owed
    n_arm_only: int  # tasks of those counted that the arm alone rescued
    n_resample_only: int  # tasks of those counted that the control alone rescued
    wealth: float  # times the stake: what bets on the better side are worth after the last task counted
    bar: float  # times the stake: what the bets on a side must be worth once for a verdict
    p: float  # valid whenever it is looked at, adjusted over the arms; never goes up
    verdict: Word  # better, worse, inconclusive; never equivalent
    at: int | None  # tasks counted when the bar was reached; null while it is not


class Watch(TypedDict):
    planned: bool  # whether the plan came first and nothing but the number of tasks (or of re-runs) has changed
    arms: dict[Arm, WatchedArm]  # each other arm against the control, by rescues; empty without it


class PerSample(TypedDict):
    rate: float | None  # fraction: passes over samples, its mean over tasks; null where the arm stopped, or no task
    reason: str | None  # why there is no rate, or no comparison; null where there are both
    interval: NotRequired[Pair]  # fraction: of the rate; null where all tasks are alike; absent where the arm stopped
    passes: NotRequired[int]  # attempts that passed; absent where the arm stopped
    samples: NotRequired[int]  # attempts drawn; absent where the arm stopped
    n: NotRequired[int]  # tasks on which the arm owes nothing; absent where it stopped
    passes_after_first: NotRequired[int]  # attempts that passed in a round after the first one with a pass, which they
    # may have been shown; absent where the arm stopped, and in older files
    repeats: NotRequired[int]  # attempts of them with the program of an earlier round's pass; absent likewise
    paired: NotRequired[Against | None]  # against the control; null where that stopped or is none; absent for the
    # control itself, and where the arm stopped


class StoppedRate(TypedDict):
    rate: float | None  # fraction: passes over samples, inflated by stopping; null without a task
    n: int  # tasks on which the arm owes nothing
    stopped_tasks: int  # tasks on which it stopped before its last round
    delta: NotRequired[float | None]  # fraction: the arm less the control; absent for the control, or without one
    interval: NotRequired[Pair]  # fraction: of delta; as delta
    p: NotRequired[float | None]  # of the sign-flip test; as delta


class Coverage(TypedDict):
    n: int  # tasks on which the arm owes nothing
    method: str  # pass_at_k: from all draws, exchangeable; by_round: spent as the arm spends them
    share: list[float | None]  # fraction of tasks with a pass after 1..B samples; null without a task
    interval: list[Pair]  # fraction: Wilson's, for as many tasks as the spread is worth, for each number of samples


class Climbed(TypedDict):
    best_fitness: float | None  # fraction: a particle's best fitness so far, mean over tasks; null without a task
    shown: float | None  # fraction: programs that pass every visible test, mean over tasks; null without a task
    hidden: float | None  # fraction: hidden tests passed, none for a program that fails a visible one; null likewise
    hidden_among_shown: float | None  # fraction: hidden tests passed by programs that pass every visible one; null
    # without such a program
    shown_programs: int  # attempts that pass every visible test


class Active(TypedDict):
    tasks: int  # tasks on which the arm and the control both drew this round
    arm: Climbed  # the arm on these tasks
    resample: Climbed | None  # the control on these tasks; null for the control, or without one


class Together(TypedDict):
    """All arms on the same tasks: every arm has finished them, and where arms stop none has solved them before."""

    tasks: int  # tasks
    all_visible_share: float | None  # fraction of programs that pass every visible test; null without a task
    passed_share: float | None  # fraction of programs that pass every test; null without a task


class ClimbRound(TypedDict):
    round: int  # from 0
    programs: int  # attempts of this round on finished tasks
    all_visible: int  # attempts that pass every visible test
    all_visible_share: float | None  # fraction: all_visible / programs; null without a program
    passed: int  # attempts that pass every test
    active: Active  # what is compared round by round
    together: Together  # what can be compared between arms within a round


class MeanInterval(TypedDict):
    mean: float | None  # fraction: mean over tasks; null without a task
    interval: Pair  # fraction: bootstrap over tasks; null where every task says the same, and under two tasks


class Gained(TypedDict):
    """From one round to another, on the same tasks."""

    shown: MeanInterval  # movement of the share of programs that pass every visible test
    hidden: MeanInterval  # movement of the mean share of hidden tests passed
    gap: MeanInterval  # shown less hidden: the climb that the hidden tests do not follow
    passed: NotRequired[MeanInterval]  # movement of the share of programs that pass every test; older files have none


class Moved(Gained):
    from_round: int  # 0
    to_round: int  # the last round that has active tasks
    n: int  # tasks active in it


class Climb(TypedDict):
    rounds: list[ClimbRound]  # round by round
    moved: Moved | None  # the last active round against round 0; null where no later one is active
    against_resample: Gained | None  # the same less the control's on the same tasks; null for the control, and as moved


class Signal(TypedDict):
    refine_prompts: int  # attempts whose prompt showed the particle's own best
    own_zero: int  # attempts whose own best had fitness 0
    own_zero_share: float | None  # fraction: own_zero / refine_prompts; null without one
    with_neighbour: int  # attempts whose prompt showed another one's best too
    neighbour_better: int  # attempts where that one's fitness was the higher
    neighbour_better_share: float | None  # fraction: neighbour_better / with_neighbour; null without one


class Likeness(TypedDict):
    round: int  # from 0
    tasks: int  # tasks with a program in this round
    programs: int  # attempts with a program in this round
    to_own_first: float | None  # fraction: likeness to the particle's first program; null in round 0
    exact_repeats: int  # attempts whose program the arm wrote on this task in an earlier round already
    exact_repeats_share: float | None  # fraction of programs, mean over tasks; null without a task
    diversity: float | None  # fraction: 1 less the likeness of two programs of a task; null without two
    distinct_programs: float | None  # attempts: different programs of a task, mean; null without a task
    distinct_signatures: float | None  # attempts: different results on the visible tests, mean; null likewise


class NearMiss(TypedDict):
    all_fail: int  # tasks whose whole base group failed
    near_miss: int  # tasks of them on which a base attempt passed a visible test
    share: float | None  # fraction: near_miss / all_fail; null without an all-fail task
    mean_best_fitness: float | None  # fraction: best base fitness, mean over near misses; null without one
    at_least_half: int  # tasks: near misses on which a base attempt passed half of the visible tests
    at_least_half_share: float | None  # fraction: at_least_half / near_miss; null without one


class Unrescued(TypedDict):
    n: int  # tasks given to the arms that all finished and none rescued
    mean_best_fitness: float | None  # fraction: best fitness of any attempt, mean over tasks; null without one
    at_zero: int  # tasks whose best fitness is 0
    at_zero_share: float | None  # fraction: at_zero / n; null without one


class Found(TypedDict):
    rescued: int  # tasks with a pass
    share: float | None  # fraction of the tasks given; null without one
    wilson: Pair  # fraction: Wilson's interval of the share; null without a task


class Pooled(TypedDict):
    n: int  # tasks given to the arms
    runs: int  # arms, and re-runs of the control
    all_runs: Found  # rescued by at least one arm or re-run
    arms_alone: Found  # rescued by at least one arm
    rows: int  # attempts: distinct passing programs of the arms, the rows of rescued.jsonl
    rows_tasks: int  # tasks that these rows come from
    incomplete_tasks: int  # tasks on which an arm or a re-run still owes attempts


class Disagree(TypedDict):
    n: int  # tasks with two base attempts
    count: int  # tasks on which one of the first two passes
    share: float | None  # fraction: count / n; null without one
    wilson: Pair  # fraction: Wilson's interval of the share; null without a task


class TrainingSet(TypedDict):
    n: int  # tasks with a whole base group
    base: dict[PassShare, int]  # tasks by share of passes of the base group
    on_policy: dict[PassShare, int]  # the same with all that answered the bare prompt
    with_refined: dict[PassShare, int]  # the same with refined attempts too
    first_two_disagree: Disagree  # what a selector that looks at two samples sees


class ByTagArm(TypedDict):
    n: int  # tasks of this value on which the arm owes nothing
    rescued: int  # tasks of them with a pass


class ByTag(TypedDict):
    tasks: int  # tasks of this value
    all_fail: int  # tasks of them whose base group failed
    given: int  # tasks of them given to the arms
    arms: dict[Arm, ByTagArm]  # rescues of each arm


class Played(TypedDict):
    passes: int  # attempts that passed
    drawn: int  # attempts made
    round: int | None  # of the first pass; null without one
    done: bool  # whether nothing is owed


class ByTask(TypedDict):
    base: int | None  # attempts of the base group that passed; null where the group is not whole
    drawn: int  # attempts of the base group
    arms: NotRequired[dict[Arm, Played]]  # each arm's one; absent where the task was not given to the arms
    made_of: NotRequired[list[str]]  # the functions of a bundle, by their MBPP numbers; absent where the task is none
    reruns: NotRequired[list[Played]]  # each re-run of the control; absent as arms


class OutcomeRow(TypedDict):
    n: int  # attempts
    counts: dict[Outcome, int]  # attempts by how they ended
    truncated: int  # attempts cut at max_tokens
    truncated_share: float | None  # fraction: truncated / n
    cut_while_thinking: int  # attempts cut before their answer began
    empty: int  # attempts with an empty reply
    identical: int  # attempts whose reply repeats another one on the same task


class Power(TypedDict):
    """A range goes from the worse case to the better one, as `discordance_assumed` says; null without a task."""

    n: int  # tasks that the arm and the control both finished
    discordant: int  # tasks that one of the two alone rescued
    discordance: float | None  # fraction: discordant / n; null without a task
    wilson: Pair  # fraction: Wilson's interval of the discordance; null without a task
    effect: float  # fraction: the true difference that is asked about, the margin
    foretold_by: str  # what the discordance is taken from: base group, these tasks (near-miss, or none foretold)
    discordance_equal: float | None  # fraction: of two equal arms, by the base group; null without
    discordance_assumed: Pair  # fraction: from that of two equal arms (its 80% interval, else the observed one) to the
    # effect more; at least the effect
    tasks_needed: list[int] | None  # tasks for a power of 80%, one comparison alone: fewest, most; null without a task
    power: Pair  # fraction: chance to see the effect, one comparison alone
    power_holm: Pair  # fraction: the same at Holm's first step over the arms


class Fresh(TypedDict):
    """What fresh draws give and are expected to give; null without a base pass or failure, and for groups of one."""

    n: int  # tasks with a whole base group
    all_fail: int  # tasks of them whose whole base group failed
    chances: Pair  # a and b of the Beta distribution of the tasks' chances, by maximum likelihood
    fits_p: float | None  # p-value: is the base group beta-binomial; small = what is foretold is doubtful
    base: list[float | None]  # fraction of tasks with a pass in 1..G draws: unbiased; null without a task
    base_interval: list[Pair]  # fraction: Wilson's, for as many tasks as their spread is worth, for each
    beyond: list[float | None]  # fraction of tasks with a pass in G+1..G+B draws: by the fit
    beyond_interval: list[Pair]  # fraction: bootstrap over tasks, for each
    rescue: list[float | None]  # fraction of all-fail tasks with a pass in 1..B draws more: by the fit
    rescue_interval: list[Pair]  # fraction: bootstrap over tasks, for each


class Results(Published, total=False):
    """All of results.json. measure writes every key; a file from elsewhere may hold the published ones alone."""

    schema_version: int  # of this file; it goes up when a key is added, goes, or changes its meaning
    audit: Audited | None  # which tasks can be passed at all, and every rate without those that cannot; null without
    # an audit.json
    verified: VerifiedRows  # what rescued programs do on tests that decided nothing
    verdict: Verdict  # the plan's rule applied
    predictions: dict[Arm, Prediction]  # what --predict said, beside what came out; empty without it
    incomplete: Incomplete  # what an interrupted run still owes and what a server refuses: out of the figures
    hinted: dict[
        Arm, Hinted
    ]  # the arms that are shown references; `pooled`, `unrescued` and `training_set` do not count
    # them
    intervals: dict[Arm, Rescues]  # rescue rate of each arm
    paired: dict[Arm, Paired]  # rescue rate of each other arm against the control; empty without it
    watched: Watch  # the verdict that holds whenever it is looked at, for runs under way and runs that grew
    per_sample: dict[Arm, PerSample]  # passes per sample over full budgets
    per_draw_stopped: dict[Arm, StoppedRate | str] | None  # passes per draw where arms stopped; its key `label` is a
    # sentence that says so; null where all drew full budgets
    coverage: dict[Arm, Coverage]  # tasks with a pass by samples spent
    climb: dict[Arm, Climb]  # do programs climb the tests they are shown, and do the hidden ones follow
    signal: dict[Arm, Signal]  # what refine prompts had to offer
    anchoring: dict[Arm, list[Likeness]]  # how far programs move, round by round
    near_miss: NearMiss  # all-fail tasks where fitness has a slope to offer
    unrescued: Unrescued  # how close the tasks came that nobody rescued
    pooled: Pooled  # what the extra samples found, however they were structured
    training_set: TrainingSet  # how the set that a selector keeps moves
    by_tag: dict[Tag, dict[Value, ByTag]]  # rescues by rating band, split, your own tags
    by_task: dict[Task, ByTask]  # what each task brought
    outcomes: dict[Group, OutcomeRow]  # how attempts ended: base, round0, each arm, "resample re-runs"
    fresh: Fresh  # what fresh draws are expected to give: what an arm must beat
    power: dict[Arm, Power]  # what these tasks could have shown; empty without the control
    cost: Cost  # what was paid
    efficiency: dict[Arm, Efficiency]  # rescues for what they cost
    warnings: list[str]  # sentences: what a reader must know before any figure
    grades: str  # attempts, or the name of the regrade whose grades count
    tier: str | None  # behind which walls programs ran; null where none were run
    graded_under: list[str] | None  # tier and rules that attempts were graded under, each once; null after a regrade
    identity: dict[Setting, Any]  # the settings that make the experiment, as in config.json
    dry_run: bool  # whether toy tasks and the fake policy were used
