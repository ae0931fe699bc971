"""The benchmark: its arithmetic is right and every case runs. Nothing here is timed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import chat as bench_chat
from bench import react as bench_react
from bench import run as bench_run
from bench.bars import BARS, JUDGED_ROUNDS, Bar, Verdict, bar_of, judge
from bench.cases import CASES, Case
from bench.machine import file_system
from bench.ratios import missed, paired, rows
from bench.report import Run, caveats, markdown
from bench.rounds import Series, in_order
from bench.savers import PAIRS, PRAGMAS

CONTESTANTS = [contestant for pair in PAIRS for contestant in (pair.ours, pair.peer)]
LABELS = {contestant.label for contestant in CONTESTANTS}


def numbers(case: Case, value: float) -> dict[str, float]:
    return {measure.name: value for measure in case.measures}


def series(letter: str, durability: str | None, ours: list[float], peer: list[float]) -> Series:
    """A case in which every measure of ours, and every one of the peers, has the same number in each round."""
    made = Series(CASES[letter], durability)  # type: ignore[arg-type]
    for pair in PAIRS:
        made.measured[pair.ours.label] = [numbers(made.case, value) for value in ours]
        made.measured[pair.peer.label] = [numbers(made.case, value) for value in peer]
    return made


def a_run(*all_series: Series, synchronous: str = "FULL", kind: str = "ext4") -> Run:
    pragmas = {label: dict.fromkeys(PRAGMAS, "?") | {"synchronous": synchronous} for label in sorted(LABELS)}
    return Run(
        date="2026-01-31",
        rounds=JUDGED_ROUNDS,
        smoke=False,
        machine={"file system of the databases": kind},
        versions={"Python": "3"},
        pragmas=pragmas,
        load=(0.5, 1.0),
        series=all_series,
    )


def test_a_ratio_is_the_median_of_the_ratios_of_single_rounds() -> None:
    """Not the ratio of the medians, which would be 20 / 10."""
    result = paired([10, 20, 90], [10, 40, 9])
    assert (1.0, 0.5, 10.0) == (result.ratio, result.low, result.high)
    assert (20, 10) == (result.ours, result.peer)


def test_an_even_number_of_rounds_takes_the_middle_of_the_two() -> None:
    assert 1.5 == paired([1, 2], [1, 1]).ratio


@pytest.mark.parametrize(("ours", "peer"), [([], []), ([1.0], [1.0, 2.0]), ([1.0], [0.0]), ([-1.0], [1.0])])
def test_numbers_that_have_no_ratio_are_refused(ours: list[float], peer: list[float]) -> None:
    with pytest.raises(ValueError, match=r"rounds|not positive"):
        paired(ours, peer)


@pytest.mark.parametrize(
    ("ratio", "bar", "verdict"),
    [
        (0.75, Bar(0.9, 0.75), Verdict.GOAL),
        (0.76, Bar(0.9, 0.75), Verdict.BAR),
        (0.9, Bar(0.9, 0.75), Verdict.BAR),
        (0.9001, Bar(0.9, 0.75), Verdict.MISSED),
        (1.5, Bar(1.25, 1.5, more_is_better=True), Verdict.GOAL),
        (1.25, Bar(1.25, 1.5, more_is_better=True), Verdict.BAR),
        (1.2, Bar(1.25, 1.5, more_is_better=True), Verdict.MISSED),
        (0.1, Bar(0.85), Verdict.BAR),
        (9.0, None, Verdict.NO_BAR),
    ],
)
def test_a_verdict_follows_from_ratio_bar_and_goal(ratio: float, bar: Bar | None, verdict: Verdict) -> None:
    assert verdict is judge(ratio, bar)


def test_every_bar_belongs_to_a_measure_of_a_case() -> None:
    """A measure that was renamed would lose its bar without a word."""
    measured = {(case.letter, measure.name) for case in CASES.values() for measure in case.measures}
    assert {(letter, measure) for letter, measure, _ in BARS} <= measured


def test_a_goal_is_at_least_as_hard_as_its_bar() -> None:
    assert [] == [bar for bar in BARS.values() if bar.goal is not None and not bar.keeps(bar.goal, bar.bar)]


def test_durability_exit_has_no_bar() -> None:
    assert bar_of("A", "superstep", "sync", "async") is not None
    assert bar_of("A", "superstep", "sync", "exit") is None


def test_the_order_of_the_contestants_rotates() -> None:
    """Over four rounds each runs in every place once, and always next to the one it is compared with."""
    orders = [in_order(PAIRS, number) for number in range(4)]
    assert [4] * 4 == [len({order.index(each) for order in orders}) for each in CONTESTANTS]
    assert {frozenset((pair.ours, pair.peer)) for pair in PAIRS} == {frozenset(order[:2]) for order in orders}


def test_a_row_compares_ours_with_the_peer_of_the_same_api() -> None:
    made = series("A", "sync", [2.0], [4.0])
    made.measured["AsyncSqliteSaver"] = [numbers(made.case, 1.0)]
    ratios = {(row.measure.name, row.pair.form): row.paired.ratio for row in rows([made])}
    assert {("superstep", "sync"): 0.5, ("superstep", "async"): 2.0} == {
        key: ratio for key, ratio in ratios.items() if key[0] == "superstep"
    }


def test_the_page_tells_what_was_missed() -> None:
    good, bad = series("A", "sync", [4.0], [10.0]), series("A", "async", [7.0], [10.0])
    assert ["A async, superstep, async API"] == [row.title for row in missed(rows([good, bad]))]
    page = markdown(a_run(good, bad))
    assert "3 of 4 bars met, 3 of 4 goals reached.\n\n- Missed: A async, superstep, async API\n" in page
    assert "| superstep | async | async | **0.70** | 0.70 – 0.70 | ≤ 0.6 | ≤ 0.45 | MISSED | 7 µs | 10 µs |" in page


def test_the_page_tells_why_not_to_believe_it() -> None:
    run = a_run(series("A", "sync", [1.0], [1.0]))
    assert [] == caveats(run)
    assert "Not like with like: AsyncSqliteSaver" in caveats(a_run(*run.series, synchronous="NORMAL"))[0]
    assert "tmpfs" in caveats(a_run(*run.series, kind="tmpfs"))[0]
    assert "too few" in caveats(replace(run, rounds=JUDGED_ROUNDS - 1))[0]
    assert "smoke" in markdown(replace(run, smoke=True))


@pytest.mark.parametrize(("ours", "status"), [(1.0, 0), (9.5, 1)])
def test_check_fails_when_a_bar_is_missed(
    ours: float, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_run, "_run", lambda _options: a_run(series("A", "sync", [ours], [10.0])))
    page = str(tmp_path / "page.md")
    assert status == bench_run.main(["--case", "A", "--check", "--markdown", page])
    assert 0 == bench_run.main(["--case", "A", "--markdown", page])


@pytest.mark.parametrize("wrong", ["--rounds 0", "--check --rounds 6", "--check --smoke", "--dir no/such/folder"])
def test_wrong_options_are_refused_before_anything_runs(wrong: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_run.main(wrong.split())


def test_a_run_that_leaves_something_out_replaces_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "benchmarks.md"
    monkeypatch.setattr(bench_run, "PAGE", page)
    monkeypatch.setattr(bench_run, "_run", lambda _options: a_run(series("A", "sync", [1.0], [1.0])))
    for part in ("--smoke", "--case A", "--rounds 6", "--durability sync"):
        bench_run.main(part.split())
        assert not page.exists()
    bench_run.main([])
    assert page.read_text("utf-8").startswith("# Benchmarks")


@pytest.mark.skipif(not Path("/proc/self/mounts").exists(), reason="only Linux lists its mounts there")
def test_the_file_system_of_a_folder_is_that_of_the_innermost_mount() -> None:
    assert "proc" == file_system(Path("/proc/self"))


def test_a_smoke_run_of_every_case_fills_every_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every contestant gives every number of every case, in each round, and the page shows a ratio for each."""
    monkeypatch.setattr("gc.collect", lambda: 0)  # only for calm measurements; half of the time of this test
    page, data = tmp_path / "page.md", tmp_path / "data.json"
    cases = [word for letter in CASES for word in ("--case", letter)]
    assert 0 == bench_run.main(
        [*cases, "--smoke", "--markdown", str(page), "--json", str(data), "--dir", str(tmp_path)]
    )

    told = json.loads(data.read_text("utf-8"))
    expected = {(case.letter, durability) for case in CASES.values() for durability in case.durabilities}
    assert expected == {(each["case"], each["durability"]) for each in told["measured"]}
    for each in told["measured"]:
        names = [measure.name for measure in CASES[each["case"]].measures]
        assert LABELS == each["numbers"].keys()
        assert [[names]] * len(LABELS) == [[list(one) for one in got] for got in each["numbers"].values()]
    assert dict.fromkeys(LABELS, "wal") == {who: read["journal_mode"] for who, read in told["pragmas"].items()}
    table_rows = [line for line in page.read_text("utf-8").splitlines() if "**" in line and line.startswith("| ")]
    assert len(told["ratios"]) == len(table_rows)
    assert [page, data] == sorted(tmp_path.iterdir(), reverse=True)


def test_a_tiny_run_of_the_agents_gives_a_ratio_for_every_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every side drives the same agent to its answer, one at a time and at once, and leaves nothing behind."""
    monkeypatch.setattr("gc.collect", lambda: 0)
    tiny = ["--rounds", "2", "--turns", "2", "--runs", "1", "--at-once", "2", "--dir", str(tmp_path)]
    assert 0 == bench_react.main(tiny)
    lines = capsys.readouterr().out.splitlines()
    count = len(bench_react.MEASURES)
    measures, commits, caveat = lines[2 : 2 + count], *lines[2 + count : 4 + count]
    assert [*bench_react.MEASURES] == [line[:32].strip() for line in measures]
    assert [2] * count == [line.count(" – ") for line in measures]
    assert float(commits.removeprefix("commits of the engine in a turn: ")) > 1
    assert caveat.startswith("warning: 2 rounds are too few")
    assert [] == list(tmp_path.iterdir())


def test_a_tiny_run_of_a_chat_gives_a_ratio_for_every_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides hold the same chat, and leave nothing behind."""
    monkeypatch.setattr("gc.collect", lambda: 0)
    assert 0 == bench_chat.main(["--rounds", "2", "--turns", "3", "--dir", str(tmp_path)])
    _, *measures, caveat = capsys.readouterr().out.splitlines()
    assert [*bench_chat.MEASURES] == [line[:28].strip() for line in measures]
    assert [1] * len(measures) == [line.count(" – ") for line in measures]
    assert caveat.startswith("warning: 2 rounds are too few")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", ["--turns 1", "--rounds 0", "--at-once none"])
def test_a_run_of_agents_refuses_sizes_that_give_no_numbers(wrong: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        bench_react.main(wrong.split())
