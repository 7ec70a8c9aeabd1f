"""Prints the version of GStreamer and which of the named elements are missing, as JSON."""

import json
import sys

import gi

gi.require_version("Gst", "1.0")
for library in ("GstSdp", "GstVideo", "GstWebRTC"):
    gi.require_version(library, "1.0")

from gi.repository import Gst, GstSdp, GstVideo, GstWebRTC  # noqa: F401

Gst.init(None)
missing = [name for name in sys.argv[1:] if Gst.ElementFactory.find(name) is None]
plugin = Gst.Registry.get().find_plugin("weir")
version = Gst.version_string()
if plugin is not None:
    version = f"{version}, weir {plugin.get_version()}"
print(json.dumps({"version": version, "missing": missing}))
