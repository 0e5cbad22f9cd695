/**
 * What the client of a WebSocket says is disguised on the wire, by four bytes that stand beside it (RFC 6455, 5.3): no
 * secret, but enough to hide a word from whoever looks for it.
 */

/** @returns the payloads of what a client sent, one after the other; nothing for bytes that are no WebSocket client's */
export function unmasked(sent: Buffer): Buffer {
  const headEnd = sent.indexOf('\r\n\r\n');
  if (headEnd < 0 || !/^GET .*sec-websocket-key:/is.test(sent.toString('latin1', 0, headEnd))) return Buffer.alloc(0);
  const payloads: Buffer[] = [];
  for (let at = headEnd + 4; at + 6 <= sent.length;) {
    const { length, lengthBytes } = lengthAt(sent, at + 1);
    const maskAt = at + 1 + lengthBytes;
    const mask = sent.subarray(maskAt, maskAt + 4);
    const payload = Buffer.from(sent.subarray(maskAt + 4, maskAt + 4 + length));
    for (let i = 0; i < payload.length; i++) payload[i]! ^= mask[i & 3]!;
    payloads.push(payload);
    at = maskAt + 4 + length;
  }
  return Buffer.concat(payloads);
}

function lengthAt(bytes: Buffer, at: number): { readonly length: number; readonly lengthBytes: number } {
  const short = bytes[at]! & 127;
  if (short === 126) return { length: bytes.readUInt16BE(at + 1), lengthBytes: 3 };
  if (short === 127) return { length: Number(bytes.readBigUInt64BE(at + 1)), lengthBytes: 9 };
  return { length: short, lengthBytes: 1 };
}
