"""Driver of the arena for GStreamer with our element weircc: the sender of the lab's own pipelines, under one controller.

`driver.py CONTROLLER` talks to the lab as docs/guide/arena.md says; `driver.py CONTROLLER --version` prints the version.
"""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = HERE / "target" / "release" / "libgstweir.so"
os.environ["GST_PLUGIN_PATH"] = f"{PLUGIN.parent}:{os.environ.get('GST_PLUGIN_PATH', '')}"
sys.path[:0] = [
    str(HERE.parent),
    str(HERE.parent.parent / "lab" / "call" / "src" / "peers" / "pipeline"),
]

import pipelines
import sender


def main():
    """Serves the calls, or prints the version."""
    controller, *options = sys.argv[1:]
    if options == ["--version"]:
        pipelines.tell_version("weir", "weircc", "weircc")
        return

    def make(lines, call, settings):
        return pipelines.Sender(lines, call, {**settings, "algorithm": controller})

    sender.serve(make)


if __name__ == "__main__":
    main()
