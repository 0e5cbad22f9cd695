/** The doors of the sealed channel over HTTP: bytes in, bytes out. What is in them is `sealed/`'s business. */
import { decodeEnvelope } from '../../../channel/envelope.ts';
import { HINT } from '../../../channel/hint.ts';
import { isForwarded } from '../../guard.ts';
import { PAIRING_BODY_BYTES, PUBLIC_BODY_BYTES, SESSION_BODY_BYTES } from '../../bounds.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../route.ts';
import type { SealedOp } from '../../sealed/channel-server.ts';
import type { SealedSource } from '../../sealed/source.ts';

const HEADERS = {
  'content-type': 'application/octet-stream',
  'cache-control': 'no-store, no-transform',
  // Proxies that collect an answer before they pass it on would hold a stream back.
  'x-accel-buffering': 'no',
};

/** For whoever reads the status and not the hint. */
const STATUS_OF_HINT: Readonly<Record<number, number>> = {
  [HINT.handshakeRefused]: 401,
  [HINT.unknownSession]: 401,
  [HINT.callNumber]: 409,
  [HINT.tooManyCalls]: 429,
  [HINT.malformed]: 400,
  [HINT.rateLimited]: 429,
  [HINT.shuttingDown]: 503,
  [HINT.challengeOver]: 410,
  [HINT.pairingDenied]: 403,
  [HINT.codeRefused]: 403,
  [HINT.tooManyPairings]: 429,
  [HINT.notOffered]: 404,
};

type Needs = Pick<Services, 'channelServer'>;

function doorRow(op: SealedOp, row: Pick<Route, 'path' | 'maxBodyBytes' | 'summary'>): Route<Needs> {
  return {
    ...row,
    method: 'POST',
    access: 'channel',
    clientPrefix: '',
    readsStream: true,
    handle: (request, services) => enter(op, request, services),
  };
}

export const pairInvite = doorRow('invite', {
  path: '/pair-invite',
  maxBodyBytes: PAIRING_BODY_BYTES,
  summary: 'Pairs a device that holds an invite: a handshake, then one sealed call.',
});

export const pairByCode = doorRow('discovery', {
  path: '/pair',
  maxBodyBytes: PAIRING_BODY_BYTES,
  summary: 'Pairs a device by a code that its owner reads at the gateway: two steps of CPace, then one sealed call.',
});

export const secureSession = doorRow('session', {
  path: '/secure/session',
  maxBodyBytes: SESSION_BODY_BYTES,
  summary: 'The handshake of a paired device.',
});

export const secureCall = doorRow('call', {
  path: '/secure/call',
  maxBodyBytes: PUBLIC_BODY_BYTES,
  summary: 'A sealed call of a paired device to any other route.',
});

async function enter(op: SealedOp, request: GatewayRequest, { channelServer }: Needs): Promise<Reply> {
  const { clientKey, signal, stream } = request;
  const cut = new AbortController();
  const source = {
    transport: op === 'discovery' ? transportOfCode(request) : transportOf(request),
    clientKey,
    gone: signal,
    cut: () => cut.abort(),
  } as const;
  const answer = channelServer.handle(op, source, stream);
  const first = await answer.next();
  if (first.done === true) return { status: 400, body: '' };
  const status = statusOf(first.value);
  if (status !== 200) {
    // Heard out, so that a body that is too long is that and nothing else, whatever is in it.
    for await (const _ of stream);
    return { status, headers: HEADERS, body: pieces(first.value, answer) };
  }
  return { headers: HEADERS, body: pieces(first.value, answer), cut: cut.signal, isCarrier: op === 'call' };
}

/** Also a device on this machine is a device, and not its owner. */
function transportOf({ caller }: Pick<GatewayRequest, 'caller'>): SealedSource['transport'] {
  return caller.transport === 'relay' ? 'relay' : 'lan';
}

/** For codes, which are for the owner's own network, a proxy or tunnel is as far away as a relay. */
export function transportOfCode(request: Pick<GatewayRequest, 'caller' | 'headers'>): SealedSource['transport'] {
  return isForwarded(request.headers) ? 'relay' : transportOf(request);
}

function statusOf(first: Uint8Array): number {
  if (first.length !== 4) return 200;
  const envelope = decodeEnvelope(first);
  return envelope.kind === 'hint' ? (STATUS_OF_HINT[envelope.code] ?? 400) : 200;
}

async function* pieces(first: Uint8Array, rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    yield* rest;
  } finally {
    // A generator that was not asked for more has to be told that nobody will.
    await rest.return(undefined);
  }
}
