"""Resident memory of a process, from Linux."""

import threading
import time

EVERY_S = 0.02


def anonymous_bytes(pid: int | str = "self") -> int:
    """Bytes of heap and stacks that the process holds now; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
    except OSError:
        return 0
    return int(fields.get("RssAnon", "0 kB").split()[0]) * 1024


class Peak(threading.Thread):
    """Looks at a process every 20 ms until it has ended; `bytes` is the most that was seen."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.bytes = pid, 0
        self.start()

    def run(self) -> None:
        while now := anonymous_bytes(self.pid):
            self.bytes = max(self.bytes, now)
            time.sleep(EVERY_S)
