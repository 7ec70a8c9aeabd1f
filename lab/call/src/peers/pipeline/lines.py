"""Messages of a pipeline process to and from the lab: one JSON object in each line.

A line in either direction has the number of a call, and one of these members:

    message   a message of the call's protocol, as the page of a browser sends and receives it
    target    to the lab: the controller has changed its target
    left      to the lab: this process is no longer part of the call
"""

import json
import sys
import threading
import traceback

from gi.repository import GLib


class Lines:
    """Writes lines from any thread, and hands the lab's lines to the main loop one by one."""

    def __init__(self, loop):
        self._loop = loop
        self._lock = threading.Lock()

    def read(self, handle):
        """Calls `handle(call, message)` on the main loop for each line, until the input ends."""
        threading.Thread(target=self._read, args=(handle,), daemon=True).start()

    def _read(self, handle):
        for line in sys.stdin:
            entry = json.loads(line)
            GLib.idle_add(self._guarded, handle, entry["call"], entry["message"])
        GLib.idle_add(self._loop.quit)

    def _guarded(self, handle, call, message):
        try:
            handle(call, message)
        except Exception as error:  # noqa: BLE001 - the lab must learn of any failure
            traceback.print_exc()
            self.fail(call, f"{type(error).__name__}: {error}")
        return GLib.SOURCE_REMOVE

    def write(self, call, **content):
        """Writes one line about a call."""
        text = json.dumps({"call": call, **content}, separators=(",", ":"))
        with self._lock:
            print(text, flush=True)

    def tell(self, call, kind, **members):
        """Sends a message of the call's protocol."""
        self.write(call, message={"type": kind, **members})

    def fail(self, call, cause):
        """Tells the lab why the call cannot go on."""
        self.tell(call, "failed", cause=cause)
