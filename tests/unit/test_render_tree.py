"""Trees and tables, line by line."""

from __future__ import annotations

import dataclasses

import pytest

from langgraph_ext.render import Column, Fit, Node, draw, table, width

TREE = Node(
    label="run 7",
    status="failed",
    notes=("2.1 s", "", "thread a\x1b[2J"),
    children=(
        Node(label="load", status="succeeded"),
        Node(
            label="検索",
            status="paused",
            children=(
                Node(label="ask", status="paused", children=(Node(label="question", status="pending", notes=("{}",)),)),
                Node(label="wait"),
            ),
        ),
        Node(label="price [3] #2", status="failed", notes=("2 attempts", "ValueError: größer\nals erlaubt")),
    ),
)

UNICODE = r"""
run 7  failed  2.1 s  thread a\x1b[2J
├─ load  succeeded
├─ 検索  paused
│  ├─ ask  paused
│  │  └─ question  pending  {}
│  └─ wait
└─ price [3] #2  failed  2 attempts  ValueError: größer\nals erlaubt
"""

ASCII = r"""
run 7  failed  2.1 s  thread a\x1b[2J
|- load  succeeded
|- \u691c\u7d22  paused
|  |- ask  paused
|  |  `- question  pending  {}
|  `- wait
`- price [3] #2  failed  2 attempts  ValueError: gr\xf6\xdfer\nals erlaubt
"""

NARROW = r"""
run 7  failed  2.1…
├─ load  succeeded
├─ 検索  paused
│  ├─ ask  paused
│  │  └─ question …
│  └─ wait
└─ price [3] #2  f…
"""

NARROW_ASCII = r"""
run 7  failed  2...
|- load  succeeded
|- \u691c\u7d22 ...
|  |- ask  paused
|  |  `- questio...
|  `- wait
`- price [3] #2 ...
"""


@pytest.mark.parametrize(
    ("expected", "columns", "only_ascii"),
    [(UNICODE, None, False), (UNICODE, 80, False), (ASCII, None, True), (NARROW, 19, False), (NARROW_ASCII, 19, True)],
)
def test_a_tree_is_drawn(expected: str, columns: int | None, only_ascii: bool) -> None:
    assert expected.strip() == "\n".join(map(str, draw(TREE, Fit(columns=columns, only_ascii=only_ascii))))


@pytest.mark.parametrize("only_ascii", [False, True])
@pytest.mark.parametrize("columns", range(1, 80))
def test_every_line_fits_whatever_the_width(columns: int, only_ascii: bool) -> None:
    assert columns >= max(width(str(line)) for line in draw(TREE, Fit(columns=columns, only_ascii=only_ascii)))


def test_a_part_says_what_it_is() -> None:
    """So that a terminal colours a status, and never a payload that looks like one."""
    node = Node(label="failed", status="paused", notes=("failed",))
    [line] = draw(node)
    assert [("failed", "label"), ("paused", "status"), ("  failed", "note")] == [
        (part.text, part.role) for part in line.parts if part.text.strip()
    ]


def test_a_deep_tree_is_drawn() -> None:
    node = Node(label="leaf")
    for _ in range(500):
        node = Node(label="n", children=(node,))
    assert 501 == sum(1 for _ in draw(node, Fit(columns=80)))


def test_nodes_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TREE.label = "x"  # type: ignore[misc]


COLUMNS = (Column("RUN", "label"), Column("STATUS", "status"), Column("TOOK", to_the_right=True), Column("ERROR"))
ROWS = [
    ("r1", "succeeded", "12 ms", ""),
    ("größer", "failed", "62 s", "ValueError: a\tb"),
    ("語", "idle", "", ""),
]

TABLE = r"""
RUN     STATUS      TOOK  ERROR
r1      succeeded  12 ms
größer  failed      62 s  ValueError: a\tb
語      idle
"""


def test_a_table_is_aligned_and_leaves_no_spaces_at_the_end() -> None:
    assert TABLE.strip() == "\n".join(map(str, table(COLUMNS, ROWS)))


def test_a_table_without_titles_is_cut_too() -> None:
    lines = [str(line) for line in table(COLUMNS[:2], ROWS[:2], Fit(columns=12, only_ascii=True), titles=False)]
    assert ["r1       ...", "gr\\xf6\\xd..."] == lines


def test_rows_that_come_one_by_one_are_aligned_by_what_a_column_takes_at_least() -> None:
    columns = (Column("N", to_the_right=True, at_least=4), Column("WHAT", at_least=3), Column("MORE"))
    lines = [str(line) for row in (("1", "a", "x"), ("22", "bb", "y")) for line in table(columns, [row], titles=False)]
    assert ["   1  a    x", "  22  bb   y"] == lines
