// Asks the sender of a session description for options of Opus. A sender follows the description that
// it receives, so both ends change the other's before they take it.

/** Name of the codec of redundant packets. */
const RED = "audio/red";

/** The description with these options in its section of audio; null leaves it as it is. */
export function withOptions(sdp, options) {
  if (options === null) return sdp;
  const { fec, dtx, frame, bitrate } = options;
  const type = /^a=rtpmap:(\d+) opus\/48000/im.exec(sdp)?.[1];
  if (type === undefined) return sdp;
  const wanted = { useinbandfec: Number(fec), usedtx: Number(dtx) };
  if (bitrate !== null) wanted.maxaveragebitrate = bitrate;
  const line = new RegExp(`^a=fmtp:${type} (.*)$`, "m");
  return sdp.replace(line, (_, parameters) => {
    const kept = parameters.split(";").filter((it) => !(it.trim().split("=")[0] in wanted));
    const own = Object.entries(wanted).map(([name, value]) => `${name}=${value}`);
    return `a=fmtp:${type} ${[...kept, ...own].join(";")}\r\na=ptime:${frame}`;
  });
}

/** RED before Opus, if it is wanted. */
export function preferRed(transceiver, options) {
  if (!options?.red) return;
  const { codecs } = RTCRtpReceiver.getCapabilities("audio");
  const first = codecs.filter(({ mimeType }) => mimeType.toLowerCase() === RED);
  if (first.length === 0) throw new Error("This browser has no RED.");
  const others = codecs.filter((codec) => !first.includes(codec));
  transceiver.setCodecPreferences([...first, ...others]);
}
