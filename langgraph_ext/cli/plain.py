"""Records as JSON: their fields, with times as ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

__all__ = ["iso", "plain"]


def iso(at: datetime, *, digits: int = 6) -> str:
    """A time as ISO 8601 in UTC, always of one length: `2026-11-29T10:00:00.000000Z`."""
    whole, _, micros = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").partition(".")
    return f"{whole}.{micros[:digits]}Z" if digits else f"{whole}Z"


def plain(value: Any) -> Any:
    """The same value made of what JSON knows."""
    if isinstance(value, datetime):
        return iso(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value
