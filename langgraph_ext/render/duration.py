"""A span of time, as people say it."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["duration"]


def duration(span: timedelta) -> str:
    """Two units at most: `12 ms`, `3.2 s`, `2 min 03 s`, `1 h 02 min`, `3 d 04 h`; what is left is cut off."""
    micros = span // timedelta(microseconds=1)
    if micros < 0:
        return "-" + duration(-span)
    seconds = micros // 1_000_000
    if seconds < 1:
        return f"{micros // 1000} ms"
    if seconds < 60:
        return f"{seconds}.{micros // 100_000 % 10} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    if seconds < 86400:
        return f"{seconds // 3600} h {seconds // 60 % 60:02} min"
    return f"{seconds // 86400} d {seconds // 3600 % 24:02} h"
