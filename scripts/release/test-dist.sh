#!/bin/bash
# Installs what scripts/release/dist.sh built, each into an empty root or environment, and runs a scenario there. All must give
# the same result. With --cargo it then installs the program by cargo from the packed crates, too, which compiles it.
set -euo pipefail
. "$(dirname "$0")/../usage.sh"
accept --cargo "$@"
cd "$(dirname "$0")/../.."

[ -f dist/SHA256SUMS ] || { echo 'test-dist: no packages: make dist' >&2 && exit 2; }
(cd dist && sha256sum --quiet --check SHA256SUMS)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ask=(run demo/first-call --controller gcc --seed 1 --json)

# within ROOT PROGRAM ARGUMENT...: runs a program that sees no other files than those below ROOT.
within() {
    local root=$1
    shift
    mkdir -p "$root/tmp"
    unshare --user --map-root-user --root "$root" "$@"
}
# same NAME FILE: the result must be that of the first package.
same() {
    [ -f "$work/first" ] || cp "$2" "$work/first"
    cmp "$work/first" "$2" || { echo "test-dist: $1 gives another result" >&2 && exit 1; }
    echo "test-dist: $1"
}

mkdir "$work/archive"
tar -xzf dist/weir-*-x86_64-linux.tar.gz -C "$work/archive"
program=$(cd "$work/archive" && echo weir-*/bin/weir)
within "$work/archive" "/$program" "${ask[@]}" > "$work/answer"
within "$work/archive" "/$program" run demo/first-call --controller gcc --out /runs > /dev/null
within "$work/archive" "/$program" report /runs -o /report.html > /dev/null
[ -s "$work/archive/report.html" ] || { echo 'test-dist: the archive writes no report' >&2 && exit 1; }
same 'archive: runs and reports in an empty root' "$work/answer"

# A root with dpkg's database and nothing else.
mkdir -p "$work"/deb/var/lib/dpkg/{info,updates}
touch "$work/deb/var/lib/dpkg/status"
dpkg --root="$work/deb" --log=/dev/null --force-not-root,script-chrootless --install dist/weir_*.deb > /dev/null
within "$work/deb" /usr/bin/weir "${ask[@]}" > "$work/answer"
for file in man/man1/weir-run.1.gz bash-completion/completions/weir fish/vendor_completions.d/weir.fish; do
    [ -s "$work/deb/usr/share/$file" ] || { echo "test-dist: the Debian package has no $file" >&2 && exit 1; }
done
same 'Debian package: installed into an empty root' "$work/answer"
dpkg --root="$work/deb" --log=/dev/null --force-not-root,script-chrootless --purge weir > /dev/null 2>&1
[ ! -e "$work/deb/usr" ] || { echo 'test-dist: the Debian package leaves files' >&2 && exit 1; }

# As a runtime of containers unpacks it: index, manifest, layer.
mkdir -p "$work/image" "$work/oci"
tar -xf dist/weir-*-oci.tar -C "$work/image"
layer=$(
    python3 - "$work/image" << 'EOF'
import hashlib, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])


def blob(entry):
    content = (folder / "blobs/sha256" / entry["digest"].removeprefix("sha256:")).read_bytes()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == entry["digest"]
    assert len(content) == entry["size"]
    return content


manifest = json.loads(blob(json.loads((folder / "index.json").read_text())["manifests"][0]))
assert json.loads(blob(manifest["config"]))["config"]["Entrypoint"] == ["/weir"]
blob(manifest["layers"][0])
print(folder / "blobs/sha256" / manifest["layers"][0]["digest"].removeprefix("sha256:"))
EOF
)
tar -xzf "$layer" -C "$work/oci"
within "$work/oci" /weir "${ask[@]}" > "$work/answer"
same 'OCI image: its only layer as a root' "$work/answer"

python3 -m venv "$work/environment"
"$work/environment/bin/pip" install --quiet --disable-pip-version-check --no-index dist/weir_rtc-*.whl
(
    cd "$work" && environment/bin/python - > answer << 'EOF'
import weir_rtc

print(weir_rtc.run("demo/first-call", "gcc", [1]).json()[0]["flows"][0]["rate_mbps"]["mean"])
EOF
)
python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))[0]["flows"][0]["rate_mbps"]["mean"])' "$work/first" > "$work/of-program"
cmp "$work/of-program" "$work/answer" || { echo 'test-dist: the wheel gives another result' >&2 && exit 1; }
echo 'test-dist: wheel: in an environment with nothing else'

mkdir "$work/vectors"
tar -xzf dist/weir-*-vectors.tar.gz -C "$work/vectors"
(cd "$work/vectors" && sha256sum --quiet --check --strict SHA256SUMS)
echo 'test-dist: conformance vectors: what their hashes say'

[ "${1:-}" = --cargo ] || exit 0
WEIR_INSTALL=$work/cargo scripts/release/package.sh > /dev/null
(cd "$work" && env -i cargo/bin/weir "${ask[@]}") > "$work/answer"
same 'cargo install: from the packed crates, with an empty environment' "$work/answer"
