#!/bin/sh
# sdp-transform reads an H.264 profile as text or as a number, by its digits.
#
# Version:   sdp-transform 3.0.0 (npm).
# Behaviour: `parse` and `parseParams` turn each value into a number that would print the same.
#            Values that are hexadecimal or opaque text become numbers if they happen to have
#            decimal digits only: profile-level-id 640032 (High, level 5.0) does, 42e01f
#            (constrained baseline, 3.1) does not, and so do rids and ICE's user fragments. `write`
#            gives the same text back, so nothing shows until code compares, slices or pads the
#            value: which calls fail depends on the codec or on chance.
# Output:    42e01f: string, 640032: number
#            rid hi: string, rid 1: number
#            ice-ufrag 0042: string, ice-ufrag 4200: number
# Exits with 1 if the types are others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > log 2>&1
npm install --silent --no-audit --ignore-scripts sdp-transform@3.0.0 >> log 2>&1 || { cat log; exit 1; }
cat > finding.cjs <<'END'
const { parse, parseParams } = require('sdp-transform');

const profile = id => typeof parseParams(`packetization-mode=1;profile-level-id=${id}`)['profile-level-id'];
const media = line => parse(`v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\n${line}\r\n`).media[0];
const rid = id => typeof media(`a=rid:${id} send`).rids[0].id;
const fragment = text => typeof media(`a=ice-ufrag:${text}`).iceUfrag;

const lines = [
    `42e01f: ${profile('42e01f')}, 640032: ${profile('640032')}`,
    `rid hi: ${rid('hi')}, rid 1: ${rid('1')}`,
    `ice-ufrag 0042: ${fragment('0042')}, ice-ufrag 4200: ${fragment('4200')}`,
];
console.log(lines.join('\n'));
if (!lines.every(line => /: string, .*: number$/.test(line))) {
    console.log('changed: the first of each line was a string, the second a number');
    process.exit(1);
}
END
node finding.cjs
