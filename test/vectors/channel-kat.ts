/** Runs `channel-kat.json`: one session, handshake to records, as a prototype computed it on two providers. */
import { concatBytes, utf8ToBytes } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { encodeCallHeader } from '../../channel/envelope.ts';
import type { TrafficSecrets } from '../../channel/key-schedule.ts';
import { deriveAnswerKey, deriveRequestKey, deriveTrafficSecrets } from '../../channel/key-schedule.ts';
import type { CallKey } from '../../channel/keys.ts';
import { asSessionId } from '../../channel/keys.ts';
import type { HandshakeResult } from '../../channel/noise/handshake-state.ts';
import { HandshakeState } from '../../channel/noise/handshake-state.ts';
import { IKHFS_PSK2 } from '../../channel/noise/pattern.ts';
import { encodePayload } from '../../channel/payload.ts';
import { prologueOf } from '../../channel/purpose.ts';
import type { RecordEvent } from '../../channel/record-opener.ts';
import { RecordOpener } from '../../channel/record-opener.ts';
import { RecordSealer } from '../../channel/record-sealer.ts';
import { scripted } from '../channel/scripted-crypto.ts';
import type { Outcome } from './outcome.ts';
import { fromHex, isHex, runRows } from './outcome.ts';

type ChannelKat = Readonly<Record<string, string>>;

export function runChannelKat(crypto: Crypto, content: unknown): Outcome {
  const kat = content as ChannelKat;
  const { message1, message2, results } = handshakes(crypto, kat);
  const [ours, theirs] = results.map((result) => deriveTrafficSecrets(crypto, result)) as [
    TrafficSecrets,
    TrafficSecrets,
  ];
  const hex = (name: string, bytes: Uint8Array) => ({ name, check: () => isHex(bytes, kat[name]!) });
  return runRows([
    { name: 'name', check: () => IKHFS_PSK2.protocolName === kat['name'] },
    hex('prologue', prologueOf({ kind: 'session' })),
    hex('msg1', message1),
    hex('msg2', message2),
    hex('h', results[0]!.handshakeHash),
    hex('creq', ours.requests),
    hex('cres', theirs.answers),
    hex('kreq0', deriveRequestKey(crypto, ours, 0)),
    hex('kres0', deriveAnswerKey(crypto, theirs, 0)),
    hex('kreq4095', deriveRequestKey(crypto, theirs, 4095)),
    hex('request', reseal(crypto, kat, { name: 'request', key: () => deriveRequestKey(crypto, ours, 0) })),
    hex('response', reseal(crypto, kat, { name: 'response', key: () => deriveAnswerKey(crypto, theirs, 0) })),
    {
      name: 'both sides agree',
      check: () => isHex(theirs.requests, kat['creq']!) && isHex(ours.answers, kat['cres']!),
    },
  ]);
}

function handshakes(crypto: Crypto, kat: ChannelKat) {
  const input = (name: string): Uint8Array => fromHex(kat[name]!);
  const gatewayKey = crypto.x25519(input('gs'));
  const common = { pattern: IKHFS_PSK2, prologue: prologueOf({ kind: 'session' }) };
  const initiator = new HandshakeState({
    ...common,
    role: 'initiator',
    crypto: scripted(crypto, [input('ei'), input('kemSeed')]),
    staticKey: crypto.x25519(input('cs')),
    remoteStaticKey: gatewayKey.publicKey,
  });
  const responder = new HandshakeState({
    ...common,
    role: 'responder',
    crypto: scripted(crypto, [input('er'), input('encapSeed')]),
    staticKey: gatewayKey,
  });
  for (const side of [initiator, responder]) side.setPsk(input('psk'));
  const message1 = initiator.writeMessage(encodePayload({ cv: 'test' }));
  responder.readMessage(message1);
  const terms = { sid: 'FxcXFxcXFxcXFxcXFxcXFw', exp: 7200, rekey: 3600, calls: 4096 };
  const message2 = responder.writeMessage(encodePayload(terms));
  initiator.readMessage(message2);
  const results: readonly HandshakeResult[] = [initiator.finish(), responder.finish()];
  return { message1, message2, results };
}

/** Opens the stream of the file and seals what was in it again. */
function reseal(crypto: Crypto, kat: ChannelKat, { name, key }: { name: 'request' | 'response'; key: () => CallKey }) {
  const records = fromHex(kat[name]!).subarray(22);
  const events = [...new RecordOpener(crypto, key()).push(records)];
  const sealer = new RecordSealer(crypto, key());
  const kind = name === 'request' ? 'callRequest' : 'callAnswer';
  const header = encodeCallHeader(kind, { sessionId: asSessionId(fromHex(kat['sid']!)), callNumber: 0 });
  return concatBytes(header, ...(name === 'request' ? resealRequest(sealer, events) : resealAnswer(sealer, events)));
}

function resealRequest(sealer: RecordSealer, events: readonly RecordEvent[]): Uint8Array[] {
  const [head, body, end] = events;
  if (head?.type !== 'head' || body?.type !== 'data' || end?.type !== 'end') throw new Error('not the expected stream');
  return [sealer.sealHead(head.data), sealer.sealData(body.data, { last: true })];
}

/** The file has a PAD record between the two pieces of output. */
function resealAnswer(sealer: RecordSealer, events: readonly RecordEvent[]): Uint8Array[] {
  const [head, first, last, end] = events;
  if (head?.type !== 'head' || first?.type !== 'data' || last?.type !== 'data' || end?.type !== 'end') {
    throw new Error('not the expected stream');
  }
  const done = utf8ToBytes('data: [DONE]\n\n');
  return [
    sealer.sealHead(head.data),
    sealer.sealData(first.data, { padding: 'stream' }),
    sealer.sealPad(),
    sealer.sealData(done, { padding: 'stream', last: true }),
  ];
}
