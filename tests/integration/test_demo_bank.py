"""The demo's bank: it charges what it is asked to, and what it says is what its ledger holds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from langgraph_ext import EffectNotDone
from langgraph_ext.demo.bank import Bank
from langgraph_ext.demo.charges import read_charges
from langgraph_ext.demo.payments import Payments


@contextmanager
def bank(ledger: Path, *, idempotent: bool = False) -> Iterator[Payments]:
    with Bank(ledger, idempotent=idempotent) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield Payments(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()


@pytest.mark.parametrize(("idempotent", "expected"), [(False, ["c-001", "c-002"]), (True, ["c-001"])])
def test_a_key_that_is_used_twice_is_charged_twice_unless_the_bank_honours_keys(
    tmp_path: Path, idempotent: bool, expected: list[str]
) -> None:
    with bank(tmp_path / "charges", idempotent=idempotent) as payments:
        for _ in range(2):
            payments.charge("a key", order_id="NL-1", cents=700)
        assert "c-001" == payments.find("a key")
        assert expected == [charge.charge for charge in read_charges(tmp_path / "charges")]


def test_a_charge_that_was_not_made_is_not_found(tmp_path: Path) -> None:
    with bank(tmp_path / "charges") as payments, pytest.raises(EffectNotDone):
        payments.find("a key")


def test_only_who_was_refused_knows_that_nothing_was_charged(tmp_path: Path) -> None:
    """A bank that is gone says nothing about a charge of before."""
    with bank(tmp_path / "charges") as gone:
        pass
    with pytest.raises(EffectNotDone):
        gone.charge("a key", order_id="NL-1", cents=700)
    with pytest.raises(OSError, match="refused"):
        gone.find("a key")
