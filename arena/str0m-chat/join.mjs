// How a participant joins str0m's chat: by the buttons of its page. The page sends one layer; the line that it has for
// simulcast is commented out, so the transceiver gets three here, the largest of which is the one that the server forwards.

const LAYERS = [
  { rid: "h", maxBitrate: 700_000 },
  { rid: "m", maxBitrate: 350_000, scaleResolutionDownBy: 2 },
  { rid: "l", maxBitrate: 150_000, scaleResolutionDownBy: 4 },
];

/** Two offers at once are one too many for this page: it takes the server's for the answer to its own. */
const BETWEEN_MS = 1_500;

export default async function join(page, number) {
  await page.evaluate((layers) => {
    const add = RTCPeerConnection.prototype.addTransceiver;
    RTCPeerConnection.prototype.addTransceiver = function (track, init) {
      return add.call(this, track, { ...init, sendEncodings: layers });
    };
  }, LAYERS);
  await page.click("#rtc");
  await page.waitForSelector("#cam:enabled");
  await page.waitForTimeout((number - 1) * BETWEEN_MS);
  await page.click("#cam");
  // Whether the others are seen is what is measured: over a narrow link they may not be.
}
