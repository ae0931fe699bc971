"""A tree of things with a status, drawn with lines.

    run 7  failed  2.1 s
    ├─ load  succeeded
    └─ price [3]  failed  2 attempts  ValueError: no price

The same tree gives the same lines, in Unicode and in ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from langgraph_ext.render.line import ANY, Fit, Line, Part, fitted
from langgraph_ext.render.text import escape

__all__ = ["Node", "draw"]

_UNICODE = ("├─ ", "│  ", "└─ ", "   ")
_ASCII = ("|- ", "|  ", "`- ", "   ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One thing of a tree. Its texts are escaped when it is drawn."""

    label: str
    status: str = ""
    notes: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()


def draw(node: Node, to: Fit = ANY) -> Iterator[Line]:
    """The lines of a tree, its root first, made to fit."""
    for branch, each in _walk(node):
        drawn = "".join((_ASCII if to.only_ascii else _UNICODE)[piece] for piece in branch)
        yield fitted([Part(drawn, "branch"), *_parts(each, to.only_ascii)], to)


def _walk(root: Node) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every node with the pieces that are drawn before it; without recursion, whatever the depth."""
    waiting: list[tuple[tuple[int, ...], tuple[int, ...], Node]] = [((), (), root)]
    while waiting:
        branch, below, node = waiting.pop()
        yield branch, node
        for at in reversed(range(len(node.children))):
            last = 2 if at == len(node.children) - 1 else 0
            waiting.append(((*below, last), (*below, last + 1), node.children[at]))


def _parts(node: Node, only_ascii: bool) -> Iterator[Part]:
    yield Part(escape(node.label, only_ascii=only_ascii), "label")
    if node.status:
        yield Part("  ", "note")
        yield Part(escape(node.status, only_ascii=only_ascii), "status")
    for note in node.notes:
        if note:
            yield Part("  " + escape(note, only_ascii=only_ascii), "note")
