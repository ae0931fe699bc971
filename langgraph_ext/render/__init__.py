"""Render: plain values as lines of text, the same ones for the same values.

`draw` makes a tree, `table` aligned columns; both give out `Line`s, whose parts say what they are, so that a terminal
may colour them. Whatever is drawn was escaped: no name and no payload can move the cursor. Nothing of ours is imported.
"""

from langgraph_ext.render.duration import duration
from langgraph_ext.render.line import Fit, Line, Part, Role
from langgraph_ext.render.payload import payload
from langgraph_ext.render.table import Column, table
from langgraph_ext.render.text import cut, escape, first_line, width
from langgraph_ext.render.tree import Node, draw

__all__ = [
    "Column",
    "Fit",
    "Line",
    "Node",
    "Part",
    "Role",
    "cut",
    "draw",
    "duration",
    "escape",
    "first_line",
    "payload",
    "table",
    "width",
]
