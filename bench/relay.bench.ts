/**
 * What a relay costs: bytes and frames a second and latency, each against a bare `ws` forwarder in the same run; memory
 * of an idle gateway; and how soon ten thousand are back after a restart.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import { encodeFrame } from '../relay/wire/frame.ts';
import { joinGateway, makeGatewayKey, nextFrame, opened, openSocket, registerGateway } from './relay/peers.ts';
import { forwarderProgram, gatewaysProgram, start, startRelayProgram, type Program } from './relay/processes.ts';
import { measure, type Pipe } from './relay/throughput.ts';

const STREAMS = 16;
const GATEWAYS = Number(process.env['GATEWAYS'] ?? 10_000);
const DEVICE_TAG = new Uint8Array(16).fill(1);

function portOf(first: unknown): number {
  return typeof first === 'object' && first !== null && 'port' in first ? Number(first.port) : 0;
}

async function gatewayAndClient(url: string): Promise<{ gateway: WebSocket; client: WebSocket }> {
  const gateway = openSocket(url);
  const key = makeGatewayKey();
  const allowance = { tag: DEVICE_TAG, tagClass: 'device' } as const;
  const routingId = await registerGateway(gateway, { origin: url, key, allowance });
  await sleep(50);
  return { gateway, client: await joinGateway(url, routingId, DEVICE_TAG) };
}

/** A pipe with fresh streams: none has spent its credit. */
async function relayPipe(url: string): Promise<Pipe> {
  const { gateway, client } = await gatewayAndClient(url);
  for (let stream = 1; stream <= STREAMS; stream += 1) {
    client.send(encodeFrame({ type: 'open', stream, op: 3 }));
    await nextFrame(gateway, 'open');
  }
  const senderStreams = Array.from({ length: STREAMS }, (_, index) => index + 1);
  return { sender: gateway, senderStreams, receiver: client, hasCredit: true };
}

async function barePipe(port: number): Promise<Pipe> {
  const url = `ws://127.0.0.1:${port}`;
  const [sender, receiver] = [await opened(url), await opened(url)];
  return {
    sender,
    senderStreams: Array.from({ length: STREAMS }, (_, index) => index + 1),
    receiver,
    hasCredit: false,
  };
}

async function throughput(relay: Program, bare: Program): Promise<void> {
  const url = `ws://127.0.0.1:${portOf(relay.first)}`;
  for (const [frameBytes, name] of [
    [16_384, 'MB/s with slices of 16 KiB'],
    [300, 'thousand frames/s of 300 bytes'],
  ] as const) {
    const rates: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
    for (let round = 0; round < 7; round += 1) {
      for (const which of ['bare', 'ours'] as const) {
        const pipe = which === 'ours' ? await relayPipe(url) : await barePipe(portOf(bare.first));
        rates[which].push(await measure(pipe, { frameBytes, ms: 1500 }));
        pipe.sender.terminate();
        pipe.receiver.terminate();
        await sleep(100);
      }
    }
    const scale = frameBytes === 16_384 ? 1e6 : frameBytes * 1e3;
    const median = (all: readonly number[]): number => at(all, 0.5) / scale;
    const [ours, theirs] = [median(rates.ours), median(rates.bare)];
    console.log(
      `${name}: ${ours.toFixed(1)}, bare forwarder ${theirs.toFixed(1)}: ${((100 * ours) / theirs).toFixed(1)} %   goal 80 %`,
    );
  }
}

function at(all: readonly number[], share: number): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length * share)] ?? 0;
}

/** Round trips of 300 bytes, one after the other; half of what one takes is a hop. */
async function latency(relay: Program, bare: Program): Promise<void> {
  const CALLS = 4000;
  const { gateway, client } = await gatewayAndClient(`ws://127.0.0.1:${portOf(relay.first)}`);
  client.send(encodeFrame({ type: 'open', stream: 1, op: 3 }));
  await nextFrame(gateway, 'open');
  const forwarder = await barePipe(portOf(bare.first));
  const message = encodeFrame({ type: 'data', stream: 1, bytes: new Uint8Array(300), isEnd: false });
  const ends = { ours: [client, gateway], bare: [forwarder.sender, forwarder.receiver] } as const;
  const times: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (const which of ['ours', 'bare'] as const) {
    const [near, far] = ends[which];
    far.on('message', (data: Buffer) => {
      if (data[0] === 0x11) far.send(data);
    });
    // Each has spent 300 bytes of its stream's credit by then.
    const credit = encodeFrame({ type: 'window', stream: 1, credit: 300 });
    for (let call = 0; call < CALLS; call += 1) {
      const startedAt = performance.now();
      near.send(message);
      await new Promise<void>((resolve) => {
        const onMessage = (data: Buffer): void => {
          if (data[0] !== 0x11) return;
          near.off('message', onMessage);
          resolve();
        };
        near.on('message', onMessage);
      });
      times[which].push(performance.now() - startedAt);
      if (which === 'bare') continue;
      near.send(credit);
      far.send(credit);
    }
  }
  for (const [name, share] of [
    ['p50', 0.5],
    ['p99', 0.99],
  ] as const) {
    const [ours, theirs] = [at(times.ours, share) / 2, at(times.bare, share) / 2];
    const added = ((ours - theirs) * 1000).toFixed(0);
    console.log(`A hop, ${name}: ${ours.toFixed(3)} ms, bare forwarder ${theirs.toFixed(3)} ms: ${added} µs more`);
  }
}

async function manyGateways(): Promise<void> {
  const relay = await startRelayProgram();
  const port = portOf(relay.first);
  const url = `ws://127.0.0.1:${port}`;
  await sleep(1000);
  const before = await relay.residentBytes();
  const gateways = await start(gatewaysProgram, [url, String(GATEWAYS)]);
  await sleep(10_000);
  const each = ((await relay.residentBytes()) - before) / GATEWAYS / 1000;
  console.log(`Memory of an idle gateway, at ${GATEWAYS}: ${each.toFixed(1)} KB   goal 20 KB`);
  const nextLine = new Promise<string>((resolve) => void gateways.lines.once('line', resolve));
  await relay.kill();
  const startedAt = performance.now();
  const again = await startRelayProgram(port);
  const line: unknown = JSON.parse(await nextLine);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `${GATEWAYS} gateways back after kill -9 and restart, each signed and probed: ${seconds.toFixed(1)} s   goal 60 s`,
  );
  console.log(`  ${JSON.stringify(line)}`);
  await gateways.kill();
  await again.kill();
}

const [relay, bare] = await Promise.all([startRelayProgram(), start(forwarderProgram, [])]);
await throughput(relay, bare);
await latency(relay, bare);
await Promise.all([relay.kill(), bare.kill()]);
await manyGateways();
process.exit(0);
