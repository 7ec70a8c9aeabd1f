// MILENAGE: the functions f1, f2 and f5 of AKA (TS 35.206, section 4.1) over the browser's AES.

export interface Milenage {
  /** What proves the user (f2). */
  res: Uint8Array;
  /** What hides the sequence number (f5). */
  ak: Uint8Array;
  /** What proves the network, for a sequence number and AMF (f1). */
  macOf: (sqn: Uint8Array, amf: Uint8Array) => Promise<Uint8Array>;
}

/** The bytes of hexadecimal digits. */
export function hex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/i.test(text)) throw new Error("a key of AKA is not hexadecimal");
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

const xor = (a: Uint8Array, b: Uint8Array) => a.map((byte, index) => byte ^ (b[index] ?? 0));

/** Rotates 16 bytes to the left by a number of bits that is a multiple of 8. */
const rotated = (a: Uint8Array, bits: number) => a.map((_, i) => a[(i + bits / 8) % 16] ?? 0);

export async function milenage(
  k: Uint8Array,
  opc: Uint8Array,
  rand: Uint8Array,
): Promise<Milenage> {
  if (k.length !== 16 || opc.length !== 16) throw new Error("a key of AKA has not 16 bytes");
  const key = await crypto.subtle.importKey("raw", k as BufferSource, "AES-CBC", false, [
    "encrypt",
  ]);
  // The first block of CBC with a zero vector is the block cipher itself.
  const cipher = async (block: Uint8Array) => {
    const iv = new Uint8Array(16);
    const out = await crypto.subtle.encrypt({ name: "AES-CBC", iv }, key, block as BufferSource);
    return new Uint8Array(out).slice(0, 16);
  };
  const temp = await cipher(xor(rand, opc));
  // OUT2: no rotation, and the constant c2 is 1 (TS 35.206, section 4.1).
  const second = xor(temp, opc);
  second[15] = (second[15] ?? 0) ^ 1;
  const out2 = xor(await cipher(second), opc);
  const macOf = async (sqn: Uint8Array, amf: Uint8Array) => {
    const in1 = new Uint8Array([...sqn, ...amf, ...sqn, ...amf]);
    const mixed = xor(temp, rotated(xor(in1, opc), 64));
    return xor(await cipher(mixed), opc).slice(0, 8);
  };
  return { res: out2.slice(8), ak: out2.slice(0, 6), macOf };
}
