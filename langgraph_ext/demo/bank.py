"""The bank: a payment server of the world outside, which knows nothing of the shop's database.

    python -m langgraph_ext.demo.bank --ledger charges.jsonl [--hold N …] [--idempotent]

    POST /charges             charge {"order", "cents"} under the header Idempotency-Key; answers the charge
    GET  /charges?key=…       the charges that were made under this key, a list

It charges whatever it is asked to, also a second time under the same key, unless `--idempotent` says otherwise: its
ledger shows what its callers did, not what it saved them from.  A charge is a line of that file, synced before it is
answered.  With `--hold N` the answer to the N-th charge never comes, as if the network were gone.

It listens on a free port of this machine, which is the first line that it prints, and ends when its stdin does.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["Bank"]

ANSWER_SECONDS = 0.03
"""How long the bank takes between a charge and its answer."""


class Bank(ThreadingHTTPServer):
    """The server and its ledger."""

    daemon_threads = True

    def __init__(self, ledger: Path, *, hold: Collection[int] = (), idempotent: bool) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        self.hold, self._idempotent = hold, idempotent
        self._file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._mutex = threading.Lock()
        self._charges: list[dict[str, Any]] = []

    def charge(self, key: str, order: str, cents: int) -> dict[str, Any]:
        """Take the money: a line in the ledger."""
        with self._mutex:
            before = self.made_under(key)
            if self._idempotent and before:
                return before[0]
            number = len(self._charges) + 1
            made = {"charge": f"c-{number:03}", "key": key, "order": order, "cents": cents, "held": number in self.hold}
            os.write(self._file, (json.dumps(made) + "\n").encode())
            os.fsync(self._file)
            self._charges.append(made)
            return made

    def made_under(self, key: str) -> list[dict[str, Any]]:
        """The charges of a key."""
        return [made for made in self._charges if made["key"] == key]


class Desk(BaseHTTPRequestHandler):
    """One request."""

    server: Bank

    def do_POST(self) -> None:
        """Charge."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        made = self.server.charge(self.headers["Idempotency-Key"], asked["order"], asked["cents"])
        if made["held"]:
            with suppress(ConnectionError):
                self.connection.recv(1)  # nothing comes: it returns when the caller is gone
            return
        time.sleep(ANSWER_SECONDS)
        self._answer(made)

    def do_GET(self) -> None:
        """Look up."""
        [key] = parse_qs(urlsplit(self.path).query)["key"]
        self._answer(self.server.made_under(key))

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the ledger tells it."""

    def _answer(self, content: object) -> None:
        body = json.dumps(content).encode()
        with suppress(ConnectionError):  # the caller is gone; what was charged stays charged
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def main() -> None:
    """Serve until stdin ends, which it does when whoever started the bank is gone."""
    parser = argparse.ArgumentParser(prog="langgraph_ext.demo.bank", description="A payment server for the demos.")
    parser.add_argument("--ledger", type=Path, required=True, help="the file of charges to append to")
    parser.add_argument(
        "--hold",
        type=int,
        nargs="*",
        default=[],
        metavar="N",
        help="never answer the N-th charge; several may be named",
    )
    parser.add_argument("--idempotent", action="store_true", help="charge once under one key")
    args = parser.parse_args()
    bank = Bank(args.ledger, hold=args.hold, idempotent=args.idempotent)
    threading.Thread(target=bank.serve_forever, daemon=True).start()
    sys.stdout.write(f"{bank.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
