# shellcheck shell=sh
# The other scripts read this file with `.` and then call `accept`.

# accept 'OPTION...' ARGUMENT...: the script takes these options and nothing else. `--help` prints the
# comment at the head of the script.
accept() {
    options=$1
    shift
    for argument in "$@"; do
        case " --help -h $options " in
            *" $argument "*) ;;
            *)
                echo "${0##*/}: unknown argument '$argument'; see $0 --help" >&2
                exit 2
                ;;
        esac
    done
    for argument in "$@"; do
        case $argument in
            --help | -h)
                echo "usage: $0${options:+ [$(echo "$options" | tr ' ' '|')]}"
                echo
                sed -n '2,${ /^#/!q; s/^# \{0,1\}//p; }' "$0"
                exit
                ;;
        esac
    done
}
