// Records one track of sound and sends it to the lab, which compares both ends after the call.

/** Blocks of a message: half a second of the usual blocks of 10 ms. */
const BLOCKS_MAX = 50;
const LOUDEST = 32767;

self.addEventListener("message", async ({ data: { readable, address } }) => {
  const reader = readable.getReader();
  const socket = new WebSocket(address);
  let blocks = [];
  const send = () => {
    if (blocks.length > 0 && socket.readyState === WebSocket.OPEN) socket.send(messageOf(blocks));
    blocks = [];
  };
  for (;;) {
    const { done, value: data } = await reader.read();
    if (done) break;
    const atMs = performance.timeOrigin + performance.now();
    const { timestamp: timestampUs, sampleRate: rate, numberOfFrames: frames } = data;
    // Speech is the same on both channels of a stereo microphone.
    const samples = new Float32Array(frames);
    data.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    data.close();
    if (blocks.length > 0 && blocks[0].rate !== rate) send();
    blocks.push({ atMs, timestampUs, rate, samples });
    const isOpen = socket.readyState === WebSocket.OPEN;
    if (isOpen && blocks.length >= BLOCKS_MAX) send();
  }
  send();
  socket.close(1000);
});

/** Length of the description in 4 bytes, the description, and 16 bits of each sample. */
function messageOf(blocks) {
  const told = blocks.map(({ atMs, timestampUs, samples }) => [atMs, timestampUs, samples.length]);
  const text = new TextEncoder().encode(JSON.stringify({ rate: blocks[0].rate, blocks: told }));
  const count = blocks.reduce((sum, { samples }) => sum + samples.length, 0);
  const message = new DataView(new ArrayBuffer(4 + text.length + 2 * count));
  message.setUint32(0, text.length);
  new Uint8Array(message.buffer).set(text, 4);
  let at = 4 + text.length;
  for (const { samples } of blocks) {
    for (const sample of samples) {
      const clipped = Math.max(-1, Math.min(1, sample));
      message.setInt16(at, Math.round(clipped * LOUDEST), true);
      at += 2;
    }
  }
  return message.buffer;
}
