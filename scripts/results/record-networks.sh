#!/bin/sh
# Records the event logs of lab/analyze/tests/networks anew: one real call of 22 or 47 s for each network there.
#
# usage: scripts/results/record-networks.sh [NAME.toml]...
#
# `weir call` finds Chromium on the PATH. Here that is a script, which adds the option for event logs and a folder
# that the browser's user may write to. Needs the rights of `weir call`.
set -eu
case ${1:-} in
    -h | --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
esac
cd "$(dirname "$0")/../../lab/analyze/tests/networks"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir -m 1777 "$place/logs"
chmod 755 "$place"
chromium=$(command -v chromium)
cat > "$place/chromium" << SCRIPT
#!/bin/sh
logs="$place/logs/\$(basename "\$HOME")"
mkdir -p "\$logs"
exec "$chromium" --webrtc-event-logging="\$logs" "\$@"
SCRIPT
chmod 755 "$place/chromium"
[ $# -gt 0 ] || set -- ./*.toml
for file in "$@"; do
    name=$(basename "$file" .toml)
    rm -rf "$place"/logs/*
    PATH="$place:$PATH" weir call "$name.toml" --out "$place/records"
    # The offering end is called a.
    gzip -9 -n -c "$place"/logs/a*/*.log > "$name.log.gz"
done
