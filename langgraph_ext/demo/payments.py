"""Payments: the shop's side of the bank, over HTTP.

A charge is in one of three states for who asked for it: the bank has answered; it was never asked (`EffectNotDone`);
or nobody knows, which is every other way in which a call can fail.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from langgraph_ext import EffectNotDone

__all__ = ["Payments"]

PATIENCE_SECONDS = 30.0

_OPENER = build_opener(ProxyHandler({}))
"""Whatever the environment says: no proxy leads to a bank on this machine."""

_CALLERS = threading.BoundedSemaphore(3)
"""The bank takes few callers at once."""


@dataclass(frozen=True, slots=True)
class Payments:
    """The bank at a URL."""

    url: str

    def charge(self, key: str, *, order_id: str, cents: int) -> str:
        """Charge an order, and give the charge's number.

        Raises:
            EffectNotDone: Nobody listens at the URL, so nothing was charged.
            OSError: The call failed otherwise: it may have charged.
        """
        body = json.dumps({"order": order_id, "cents": cents}).encode()
        try:
            with _CALLERS:
                return str(_ask(Request(f"{self.url}/charges", body, {"Idempotency-Key": key}))["charge"])
        except URLError as error:
            if isinstance(error.reason, ConnectionRefusedError):
                raise EffectNotDone(f"no bank at {self.url}") from error
            raise

    def find(self, key: str) -> str:
        """Look up what was charged under a key: the charge's number.

        Raises:
            EffectNotDone: The bank has no such charge.
            OSError: The bank cannot be asked, which says nothing about the charge.
        """
        found = _ask(Request(f"{self.url}/charges?key={quote(key)}"))
        if not found:
            raise EffectNotDone(f"no charge under {key}")
        return str(found[0]["charge"])


def _ask(request: Request) -> Any:
    with _OPENER.open(request, timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)
