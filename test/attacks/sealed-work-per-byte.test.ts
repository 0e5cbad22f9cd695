/** The worst bodies that we know, inside the records of a paired device's calls: sealed, they hold nobody up either. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import fc from 'fast-check';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { MAX_SEALED_BODY_BYTES } from '../../channel/request-bounds.ts';
import { findInviteCode } from '../../identity/invite-code.ts';
import { askForInvite } from '../support/invites.ts';
import { pairRaw, rawSession, request, sendCall, textOf, type PairedRaw } from '../support/raw-device.ts';
import { isThorough, seed } from '../support/sampling.ts';
import { startWatchedServer, type WatchedServer } from '../support/watched-server.ts';
import { worstBodies } from '../support/worst-bodies.ts';

const LONGEST_TURN_MS = 50;
/** What takes long takes long each time; a collection of garbage, or code that is not compiled yet, does not. */
const TRIES = 3;

/** What it reads first, and the route of each style. */
const ROUTES = [
  ['/chat/completions', 'messages'],
  ['/responses', 'input'],
  ['/v1/messages', 'messages'],
  ['/api/generate', 'prompt'],
] as const;

let server: WatchedServer;
let device: PairedRaw;
let session: InitiatorSession;

beforeAll(async () => {
  server = await startWatchedServer();
  device = await pairRaw(server.url, findInviteCode(await askForInvite(server))!);
  session = await rawSession(server.url, device);
  const question = { model: 'foundation', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] };
  await send('/chat/completions', Buffer.from(JSON.stringify(question)));
});
afterAll(() => server?.stop());

function send(path: string, body: Uint8Array) {
  const headers = [['content-type', 'application/json']] as const;
  return sendCall(`${server.url}/secure/call`, session, {
    ...request('POST', path, { headers, bodyBytes: body.length }),
    body,
  });
}

const sampled = (path: string) =>
  isThorough || path === '/chat/completions'
    ? worstBodies
    : (fc.sample(fc.shuffledSubarray([...worstBodies], { minLength: 2, maxLength: 2 }), {
        numRuns: 1,
        seed: seed + path.length,
      })[0] ?? []);

describe('A body that costs more than its bytes, sealed by a paired device, does not hold up the service', () => {
  for (const [path, field] of ROUTES) {
    for (const worst of sampled(path)) {
      test(`${path}: ${worst.name}`, async () => {
        const body = worst.make(field, MAX_SEALED_BODY_BYTES);
        let longestMs = Infinity;
        for (let at = 0; at < TRIES && longestMs >= LONGEST_TURN_MS; at += 1) {
          await server.observe();
          const answer = await send(path, body);
          longestMs = Math.min(longestMs, (await server.observe()).longestMs);
          expect(answer.head?.status, textOf(answer).slice(0, 500)).toBeLessThan(500);
        }
        expect(longestMs, 'the longest piece of work on its thread').toBeLessThan(LONGEST_TURN_MS);
      });
    }
  }

  test('and then it answers as if nothing had been', async () => {
    const question = { model: 'foundation', messages: [{ role: 'user', content: 'What is the capital of France?' }] };
    expect(textOf(await send('/chat/completions', Buffer.from(JSON.stringify(question))))).toContain('Paris');
  });
});
