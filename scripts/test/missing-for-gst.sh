#!/bin/sh
# missing-for-gst.sh: prints the Debian packages that the GStreamer plugin, its tests and its examples
# need and this machine lacks, in one line. It prints nothing if all are there.
set -eu
. "$(dirname "$0")/../usage.sh"
accept '' "$@"

missing=
# lack PACKAGE COMMAND...: notes the package as missing, once, if the command fails.
lack() {
    package=$1
    shift
    "$@" > /dev/null 2>&1 && return
    case " $missing " in
        *" $package "*) ;;
        *) missing="${missing:+$missing }$package" ;;
    esac
}
# element NAME: whether GStreamer has the element.
element() { gst-inspect-1.0 "$1"; }

lack pkg-config pkg-config --version
lack libgstreamer1.0-dev pkg-config --atleast-version=1.22 gstreamer-1.0
lack libgstreamer1.0-dev pkg-config gstreamer-check-1.0
lack gstreamer1.0-tools gst-inspect-1.0 --version
lack gstreamer1.0-plugins-base element opusenc
lack gstreamer1.0-plugins-base element videotestsrc
lack gstreamer1.0-plugins-good element vp8enc
lack gstreamer1.0-plugins-bad element webrtcbin
lack gstreamer1.0-plugins-ugly element x264enc
lack gstreamer1.0-nice element nicesrc
lack python3-gst-1.0 /usr/bin/python3 -c 'import gi; gi.require_version("Gst", "1.0")'
lack gir1.2-gst-plugins-bad-1.0 /usr/bin/python3 -c \
    'import gi; gi.require_version("GstWebRTC", "1.0"); gi.require_version("GstSdp", "1.0")'
printf '%s' "$missing"
