"""Waits for the end of a job, and shows how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO, TypeVar

from tqdm import tqdm

from .errors import MaintenanceError, invalid
from .types import Progress

OUTAGE_SECONDS = 120.0
"""For how long a job is waited for while the service does not answer."""

T = TypeVar("T")


class Bar:
    """A bar of 100 percent with a line of text; `progress` is whether it is shown, or where."""

    def __init__(self, title: str, progress: bool | TextIO) -> None:
        self._bar = tqdm(
            total=100,
            desc=title,
            file=None if isinstance(progress, bool) else progress,
            disable=progress is False,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
            mininterval=0,
        )

    def show(self, state: str, progress: Progress | None, is_done: bool) -> None:
        """Shows how far the job is; without progress its state."""
        percent = progress["percent"] if progress else self._bar.n
        message = progress["message"] if progress and state == "running" else state
        self._bar.n = 100 if is_done else percent
        # The text comes from afar: nothing in it shall move the cursor.
        self._bar.set_postfix_str("".join(c for c in message if c.isprintable()), refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


def wait_for(
    look: Callable[[float | None], T],
    is_final: Callable[[T], bool],
    show: Callable[[T], None],
    what: str,
    timeout: float | None,
    poll: float,
) -> T:
    """Looks every `poll` seconds until what is seen is final, and returns it.

    `look` gets the moment after which it is not to wait. Raises `TimeoutError` after `timeout`
    seconds. A service that is away for less than `OUTAGE_SECONDS` is waited for.
    """
    if not poll > 0:
        raise invalid("'poll' must be a number of seconds above 0.")
    until = None if timeout is None else time.monotonic() + timeout
    away_since: float | None = None
    while True:
        try:
            seen = look(until)
        except MaintenanceError as error:
            now = time.monotonic()
            if until is None or now < until:
                away_since = now if away_since is None else away_since
                if not error.is_temporary or now - away_since > OUTAGE_SECONDS:
                    raise
        else:
            away_since = None
            show(seen)
            if is_final(seen):
                return seen
        now = time.monotonic()
        if until is not None and now >= until:
            raise TimeoutError(f"{what} has not ended within {timeout:g} s, and goes on.")
        time.sleep(poll if until is None else min(poll, until - now))
