#!/bin/sh
# Prints why this machine cannot emulate a network for this user, or nothing if it can. `weir link` says the
# same; here it is known before anything is built.
set -eu
# Not by usage.sh: a test runs this text where no other file of the project can be read.
case ${1:-} in
    '') ;;
    --help | -h) sed -n '2,3s/^# //p' "$0" && exit ;;
    *) echo "${0##*/}: unknown argument '$1'; see $0 --help" >&2 && exit 2 ;;
esac

if [ "$(id -u)" -ne 0 ] && ! unshare --user --map-root-user --net true 2> /dev/null; then
    echo "not root, and users may not make network namespaces here: use sudo, or run \
'sysctl -w user.max_user_namespaces=10000'"
elif [ ! -e /dev/net/tun ]; then
    echo "no /dev/net/tun: run 'modprobe tun', or give a container '--device /dev/net/tun'"
elif ! (: <> /dev/net/tun) 2> /dev/null; then
    echo "/dev/net/tun may not be opened: use sudo, or run 'sudo chmod 0666 /dev/net/tun', or give a \
container '--device /dev/net/tun'"
fi
