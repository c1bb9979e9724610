"""Progress on stderr: one line that is rewritten on a terminal, a line every few seconds elsewhere."""

import sys
import time

QUIET_S = 0.5
"""Work shorter than this shows nothing."""

TERMINAL_INTERVAL_S = 0.1
LOG_INTERVAL_S = 5.0


class Progress:
    """Counts `total` units of work and estimates the time that is left."""

    def __init__(self, label: str, total: int):
        self.label = label
        self.total = max(total, 1)
        self.done = 0
        self.started = time.monotonic()
        self.shown = self.started - LOG_INTERVAL_S + QUIET_S
        self.terminal = sys.stderr.isatty()

    def advance(self, units: int, detail: str = "") -> None:
        """Adds finished work, and shows it if something was not shown for a while."""
        self.done = min(self.done + units, self.total)
        now = time.monotonic()
        interval = TERMINAL_INTERVAL_S if self.terminal else LOG_INTERVAL_S
        if now - self.started < QUIET_S or now - self.shown < interval:
            return
        self.shown = now
        left_s = (now - self.started) * (self.total - self.done) / max(self.done, 1)
        line = f"{self.label} {100 * self.done // self.total}%, about {left_s:.0f} s left {detail}".rstrip()
        print(f"\r\x1b[K{line}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Clears the line on a terminal."""
        if self.terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
