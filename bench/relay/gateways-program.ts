/**
 * Ten thousand gateways in one process of their own, on plain `ws`: each registers with a signature, probes its way as
 * the real one does, answers PINGs, and dials again with the real backoff when its relay is gone. Prints a line when all
 * are there, each time.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs } from '../../relay-client/backoff.ts';
import { decodeFrame, encodeFrame } from '../../relay/wire/frame.ts';
import { OP } from '../../relay/wire/op.ts';
import { joinGateway, makeGatewayKey, nextFrame, openSocket, registerGateway, type GatewayKey } from './peers.ts';

const [url = '', countText = '10000', probesText = 'probe'] = process.argv.slice(2);
const count = Number(countText);
const [isProbing, AT_ONCE] = [probesText === 'probe', 200];
let up = 0;
let atFirst = 0;
const failures: Record<string, number> = {};

/** @returns what resolves when the connection has ended */
async function connect(key: GatewayKey): Promise<{ readonly closed: Promise<void> }> {
  const socket = openSocket(url);
  const closed = new Promise<void>((resolve) => void socket.on('close', () => resolve()));
  socket.on('error', () => undefined);
  try {
    const tag = randomBytes(16);
    const routingId = await registerGateway(socket, { origin: url, key, allowance: { tag, tagClass: 'probe' } });
    socket.on('message', (data: Buffer) => {
      const frame = decodeFrame(data);
      if (frame.type === 'ping') socket.send(encodeFrame({ type: 'pong', bytes: frame.bytes }));
      else if (frame.type === 'data') socket.send(encodeFrame(frame));
    });
    if (isProbing) await probe(routingId, tag);
    return { closed };
  } catch (error) {
    socket.terminate();
    throw error;
  }
}

async function probe(routingId: Uint8Array, tag: Uint8Array): Promise<void> {
  const prober = await joinGateway(url, routingId, tag);
  prober.on('error', () => undefined);
  try {
    prober.send(encodeFrame({ type: 'open', stream: 1, op: OP.probe }));
    prober.send(encodeFrame({ type: 'data', stream: 1, bytes: randomBytes(32), isEnd: true }));
    await nextFrame(prober, 'data');
  } finally {
    prober.terminate();
  }
}

async function live(key: GatewayKey, first: () => void): Promise<never> {
  for (let failed = 0; ;) {
    try {
      const { closed } = await connect(key);
      failed = 0;
      up += 1;
      first();
      if (up === count) console.log(JSON.stringify({ up, failures }));
      await closed;
      up -= 1;
    } catch (error) {
      const reason = error instanceof Error ? error.message.slice(0, 40) : 'unknown';
      failures[reason] = (failures[reason] ?? 0) + 1;
    }
    failed += 1;
    await sleep(backoffMs(failed, Math.random));
  }
}

// They come a few at a time at first, so that what is measured later is the return and not the beginning.
async function begin(): Promise<void> {
  for (let started = 0; started < count;) {
    if (started - atFirst >= AT_ONCE) await sleep(2);
    else {
      started += 1;
      void live(makeGatewayKey(), () => (atFirst += 1));
    }
  }
}

await begin();
