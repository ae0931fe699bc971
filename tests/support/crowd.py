"""Several threads let go at once; a hang or an error in any of them fails the test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def together(*jobs: Callable[[], Any], timeout: float = 90.0) -> list[Any]:
    """Run every job in a thread of its own, all released at the same moment, and return their results in order.

    Args:
        jobs: Functions without arguments.
        timeout: Seconds until a job that has not ended counts as hanging.

    Raises:
        AssertionError: A job hangs.
        BaseException: The first error of a job, as it was raised.
    """
    gate = threading.Barrier(len(jobs))
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            gate.wait(timeout)
            results[number] = jobs[number]()
        except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), f"a job still runs after {timeout} s"
    return results
