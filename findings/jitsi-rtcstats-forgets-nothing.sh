#!/bin/sh
# A value that a browser stops reporting stays for ever in a dump of Jitsi's rtcstats.
#
# Version:   @jitsi/rtcstats 9.7.1 (npm).
# Behaviour: a dump has of each report only what differs from the one before. A member that is gone
#            (`frameWidth` of a camera that is off, `encoderImplementation` after a restart) makes
#            no difference, since only members of the new report are looked at. So the dump of
#            "gone" and of "as before" are the same, and whoever reads it has to take the last value
#            for the present one. Reports as a whole can vanish.
# Output:    as before: {"outbound":{"framesSent":20,"timestamp":0},"timestamp":2000}
#            frameWidth is gone: {"outbound":{"framesSent":20,"timestamp":0},"timestamp":2000}
# Exits with 1 if the two differ.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes > log 2>&1
npm install --silent --no-audit --ignore-scripts @jitsi/rtcstats@9.7.1 @jitsi/js-utils@2.2.1 >> log 2>&1 || { cat log; exit 1; }
npm install --silent --no-audit --ignore-scripts esbuild@0.25.12 >> log 2>&1 || { cat log; exit 1; }
cat > finding.mjs <<'END'
import watch from '@jitsi/rtcstats';

const FIRST = { framesSent: 10, frameWidth: 1280, timestamp: 1000 };
const CASES = {
    'as before': { framesSent: 20, frameWidth: 1280, timestamp: 2000 },
    'frameWidth is gone': { framesSent: 20, timestamp: 2000 },
};

/** A connection that reports these values, one after the other. */
function connection(reports) {
    return class extends EventTarget {
        signalingState = 'stable';
        iceConnectionState = 'connected';
        getStats() {
            return Promise.resolve(new Map([['outbound', { id: 'outbound', ...reports.shift() }]]));
        }
    };
}

/** What the dump says of the second report. */
async function dumped(second) {
    const found = [];
    const polls = [];
    globalThis.window = { RTCPeerConnection: connection([FIRST, second]), setInterval: poll => polls.push(poll) };
    watch({ statsEntry: (kind, id, value) => kind === 'getstats' && found.push(value) }, { pollInterval: 1000 });
    new window.RTCPeerConnection({});
    for (let poll = 0; poll < 2; poll++) {
        polls[0]();
        await new Promise(resolve => setTimeout(resolve, 0));
    }
    return JSON.stringify(found[1]);
}

const dumps = [];
for (const [name, report] of Object.entries(CASES)) {
    dumps.push(await dumped(report));
    console.log(`${name}: ${dumps.at(-1)}`);
}
if (dumps[0] !== dumps[1]) {
    console.log('changed: the dump did not tell them apart');
    process.exit(1);
}
END
# The package is for bundlers of web pages. It asks which browser this is, and looks for its classes.
cat > browser.js <<'END'
const agent = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
Object.defineProperty(globalThis, 'navigator', { value: { userAgent: agent }, configurable: true });
globalThis.window = globalThis;
globalThis.document = {};
globalThis.MediaStream = class {};
END
npx esbuild finding.mjs --bundle --format=esm --platform=browser --inject:./browser.js --outfile=bundle.mjs >> log 2>&1 \
    || { cat log; exit 1; }
node bundle.mjs
