/**
 * A relay that lies, between a real gateway and the real SDK. Whatever it does, a call ends: with exactly the bytes that
 * the gateway sent, or with an error that its caller can act on. What has an effect has it once at most, and what is
 * called `offline` or `busy` has had none. When the relay is honest again, so is what comes through it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeEnvelope } from '../../channel/envelope.ts';
import { HINT } from '../../channel/hint.ts';
import { startSession } from '../../channel/initiator.ts';
import { asPsk } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { Responder } from '../../channel/responder.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import { overheard } from '../support/canary.ts';
import { newPairedDevice } from '../support/channel-server-here.ts';
import { HONEST, type Misdeed } from '../support/hostile-relay.ts';
import {
  answering,
  ANSWERING,
  asking,
  ASKING,
  drop,
  flip,
  greeted,
  greeting,
  hint,
  insteadOf,
  lie,
  meanwhile,
  say,
  swapped,
  times,
  truncate,
  twice,
} from '../support/misdeeds.ts';
import { allHeard, ask, CANARY, countOf, startHome, startHostileWorld, type Method } from '../support/relay-home.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ServiceHere;
let device: PairedDevice;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  device = await newPairedDevice(service);
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

/** However patient it is: eight attempts to pick an answer up, each of which may be silent for 45 s. */
const LIMIT_MS = 10 * 60_000;

/** What a gateway with a key of its own would answer. */
function ownAnswer(): Uint8Array {
  const crypto = gatewayCrypto('node');
  const staticKey = crypto.x25519(crypto.randomBytes(32));
  const psk = asPsk(crypto.randomBytes(32));
  const responder = new Responder({ crypto, staticKey, findPsk: () => psk, boot: 'own', maxBodyBytes: 1 << 20 });
  const { message1 } = startSession({
    crypto,
    purpose: { kind: 'session' },
    staticKey: crypto.x25519(crypto.randomBytes(32)),
    remoteStaticKey: staticKey.publicKey,
    psk,
    hints: { clientVersion: 'own' },
  });
  return encodeEnvelope({ kind: 'sessionAnswer', noise: responder.answerSession(message1, Date.now()) });
}

/** What becomes of a GET and a POST with a small answer, and of both with a streamed one. */
type Outcomes = readonly [string, string, string, string];
const same = (get: string, post = get): Outcomes => [get, get, post, post];

const MISDEEDS: readonly (readonly [string, () => Misdeed, Outcomes])[] = [
  ['does nothing', () => HONEST, same('done')],
  ['loses handshakes', () => greeting(drop), same('offline')],
  ['loses the answers to handshakes', () => greeted(drop), same('offline')],
  ['repeats the bytes of handshakes', () => greeting(twice), same('refused')],
  ['changes handshakes', () => greeting(flip(700)), same('refused')],
  ['changes the answers to handshakes', () => greeted(flip(700)), same('wrong_gateway')],
  ['answers handshakes with junk', () => greeted(say(new Uint8Array(500))), same('offline')],
  ['answers handshakes by a key of its own', () => greeted(insteadOf(ownAnswer)), same('wrong_gateway')],
  ['refuses handshakes', () => greeted(hint(HINT.handshakeRefused)), same('refused')],
  ['loses requests', () => asking(drop), same('offline', 'unanswered')],
  ['repeats the bytes of requests', () => asking(twice), same('incompatible')],
  ['changes a bit of what a request is for', () => asking(flip(1)), same('incompatible')],
  ['changes a bit of the session', () => asking(flip(5)), same('refused')],
  ['changes a bit of the number', () => asking(flip(21)), same('incompatible')],
  ['changes a bit of a request', () => asking(flip(100)), same('incompatible')],
  ['says that a request is over', () => asking(truncate(100)), same('incompatible')],
  ['loses answers', () => answering(drop), same('offline', 'unanswered')],
  [
    'loses the beginning of an answer',
    () => times(1, { ...ANSWERING, op: OP.call }, drop),
    ['done', 'done', 'done', 'answer_lost'],
  ],
  ['repeats the bytes of answers', () => answering(twice), ['done', 'damaged', 'done', 'damaged']],
  ['changes the order of answers', () => answering(swapped(true)), ['done', 'offline', 'done', 'answer_lost']],
  ['changes the order of requests', () => asking(swapped(true)), same('done')],
  ['changes the first bit of answers', () => answering(flip(0)), same('offline', 'unanswered')],
  ['changes a bit of answers', () => answering(flip(100)), same('damaged')],
  ['ends answers before they begin', () => answering(truncate(0)), same('offline', 'unanswered')],
  ['ends answers in the header', () => answering(truncate(3)), same('truncated')],
  ['ends answers', () => answering(truncate(100)), same('truncated')],
  ['ends long answers', () => answering(truncate(2000)), ['done', 'truncated', 'done', 'truncated']],
  ['answers with junk', () => answering(say(new Uint8Array(500))), same('offline', 'unanswered')],
  ['answers with a few bytes of junk', () => answering(say(Uint8Array.of(9))), same('damaged')],
  [
    'resets streams',
    () =>
      answering(({ frame }) =>
        'stream' in frame ? [{ type: 'reset', stream: frame.stream, code: RELAY_CODE.revoked }] : [],
      ),
    same('relay_refused', 'unanswered'),
  ],
  [
    'grants more than there is',
    () => meanwhile(ASKING, (link) => link.toPeer({ type: 'window', stream: 0, credit: 0x7fff_ffff })),
    same('done'),
  ],
  [
    'grants a stream that there is not',
    () => meanwhile(ASKING, (link) => link.toPeer({ type: 'window', stream: 9999, credit: 1 })),
    same('offline'),
  ],
  [
    'answers on a stream that there is not',
    () =>
      meanwhile(ASKING, (link) => link.toPeer({ type: 'data', stream: 9999, bytes: Uint8Array.of(1), isEnd: false })),
    same('offline'),
  ],
  [
    'opens a stream at a device',
    () => meanwhile(ASKING, (link) => link.toPeer({ type: 'open', stream: 1, op: OP.call })),
    same('offline'),
  ],
  ['sends what is no frame', () => meanwhile(ASKING, (link) => link.toPeer(Uint8Array.of(1, 2, 3))), same('offline')],
  [
    'promises more than it takes',
    () => lie('joined', { connectionWindow: 0x7fff_ffff, streamWindow: 0x7fff_ffff, maxStreams: 0xffff }),
    same('done'),
  ],
  [
    'says of a good device that it is not allowed',
    () =>
      meanwhile({ role: 'client', type: 'joined' }, (link) =>
        link.toPeer({ type: 'error', code: RELAY_CODE.notAllowed }),
      ),
    same('relay_refused'),
  ],
  [
    'says of a good device that it was revoked',
    () => meanwhile(ASKING, (link) => link.toPeer({ type: 'error', code: RELAY_CODE.revoked })),
    same('relay_refused'),
  ],
  [
    'sends devices away',
    () =>
      meanwhile(ASKING, (link) =>
        link.toPeer({
          type: 'goaway',
          code: RELAY_CODE.moved,
          minMs: 3_600_000,
          spreadMs: 3_600_000,
          url: 'wss://elsewhere.example',
        }),
      ),
    same('done'),
  ],
  ['cuts the device off', () => meanwhile(ASKING, (link) => link.cut()), same('offline')],
  [
    'asks for what is for the owner’s network alone',
    () => lie('open', { op: 0x20 }, { role: 'gateway' }),
    same('relay_refused'),
  ],
  ['calls a request a handshake', () => lie('open', { op: OP.session }, { role: 'gateway' }), same('incompatible')],
  ['calls a handshake a request', () => lie('open', { op: OP.call }, { role: 'gateway' }), same('incompatible')],
  ['calls everything a pairing', () => lie('open', { op: OP.invite }, { role: 'gateway' }), same('incompatible')],
  ...(
    [
      ['handshakeRefused', same('refused')],
      ['unknownSession', same('refused')],
      ['callNumber', same('incompatible')],
      ['tooManyCalls', same('busy', 'unanswered')],
      ['malformed', same('incompatible')],
      ['rateLimited', same('busy', 'unanswered')],
      ['shuttingDown', same('offline', 'unanswered')],
      ['challengeOver', same('incompatible')],
      ['pairingDenied', same('incompatible')],
      ['codeRefused', same('incompatible')],
      ['tooManyPairings', same('incompatible')],
      ['notOffered', same('incompatible')],
    ] as const
  ).map(
    ([name, outcomes]) =>
      [`sends the hint ${name} in place of answers`, () => answering(hint(HINT[name])), outcomes] as const,
  ),
];

test('each hint that there is was sent', () => {
  const names = MISDEEDS.map(([name]) => /the hint (\w+)/u.exec(name)?.[1]).filter((name) => name !== undefined);
  expect(names).toEqual(Object.keys(HINT));
});

/** What a caller, or an SDK by itself, may ask again after. */
const INVITING = new Set(['offline', 'gateway_away', 'relay_refused', 'relay_busy', 'busy']);

const QUESTIONS: readonly (readonly [Method, string])[] = [
  ['GET', 'small'],
  ['GET', 'streamed'],
  ['POST', 'small'],
  ['POST', 'streamed'],
];

describe('a relay that', () => {
  test.for(MISDEEDS)('%s', async ([, misdeed, expected]) => {
    const world = await startHostileWorld();
    const at = await startHome(world, service);
    const { hostile, time } = world;
    const outcomes: string[] = [];
    for (const [method, kind] of QUESTIONS) {
      const client = at.newClient(device);
      const path = `/v1/${kind}/${method}`;
      const beganMs = time.now();
      hostile.misdeed = misdeed();
      const outcome = await ask(client, method, path);
      outcomes.push(outcome);
      expect(time.now() - beganMs).toBeLessThan(LIMIT_MS);
      const count = countOf(at, path);
      if (outcome === 'done') expect(count).toBeGreaterThan(0);
      if (method === 'POST') expect(count).toBeLessThanOrEqual(1);
      if (method === 'POST' && INVITING.has(outcome)) expect(count).toBe(0);
      hostile.misdeed = HONEST;
      await until(() => at.isConnected());
      // A relay that turned it away is left alone for a moment.
      await until(async () => (await ask(client, 'GET', '/v1/small/again')) === 'done');
      expect(await ask(client, 'POST', `/v1/small/after-${method}-${kind}`)).toBe('done');
    }
    expect(outcomes).toEqual(expected);
    expect(world.relay().heldBytes()).toBe(0);
    expect(overheard(allHeard(hostile), new Map([['canary', Buffer.from(CANARY)]]))).toEqual([]);
  });
});
