"""What drivers with a pipeline of GStreamer share: the sender of the lab's own pipelines as the arena calls it, and versions.

A driver puts the folder of the lab's pipelines on its path before it imports this: `import pipelines` needs `sender`.
"""

import sys

import sender
from gi.repository import Gst

# What only the lab's own pipelines have. The packets are not marked as ECN-capable: most other stacks cannot mark theirs.
PLAIN = {
    "quality": False,
    "audio": False,
    "ccfb": False,
    "ecn": "off",
    "ecnBits": 0,
    "statsInterval": 1000,
}


class NoScaler:
    """The pictures keep their size, as with the other stacks."""

    def start(self):
        """Nothing."""

    def stop(self):
        """Nothing."""


class NoReporter:
    """The lab asks no stack about itself."""

    def sample(self):
        """Nothing."""

    def report(self, _):
        """Nothing."""


class Sender(sender.Sender):
    """One call of a pipeline as a stack."""

    def __init__(self, lines, call, settings):
        super().__init__(lines, call, {**settings, **PLAIN})
        self._reporter = NoReporter()

    def _make_scaler(self):
        return NoScaler()


def tell_version(plugin, element, package):
    """Prints the versions of GStreamer and of `package`, the plugin that has the element; ends with 1 without it."""
    Gst.init(None)
    found = Gst.Registry.get().find_plugin(plugin)
    if found is None or Gst.ElementFactory.find(element) is None:
        sys.exit(f"driver.py: no plugin {plugin} with {element} in the folder target")
    # What stands behind the number names a commit.
    print(f"{Gst.version_string()}, {package} {found.get_version().split('-')[0]}")
