import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { createApprovalQueue, type ApprovalEvent, type ApprovalQueue } from '../../core/approvals/approval-queue.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { createRecorder } from '../../gateway/request-log/recorder.ts';
import type { Route, Services } from '../../gateway/route.ts';
import { createGateway } from '../../gateway/server.ts';
import { encodeOpenAiError } from '../../gateway/wire/openai-error.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { createFastTime } from '../support/fast-time.ts';
import { newInvite } from '../support/invites.ts';
import { newStaticKey, openCall, post, request, sealCall, startPairing } from '../support/raw-device.ts';
import { keysOfMemory } from '../support/registry.ts';
import { removeHome, startServiceHere, temporaryHome } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

function watch(queue: Pick<ApprovalQueue, 'subscribe'>): readonly string[] {
  const seen: string[] = [];
  queue.subscribe((event: ApprovalEvent) => seen.push(event.type === 'added' ? 'added' : event.outcome));
  return seen;
}

describe('Questions that stay before the owner when whoever asked has left', () => {
  test('a device that asks to be paired and closes its connection: the question is withdrawn', async () => {
    const home = await temporaryHome();
    toEnd.push(() => removeHome(home));
    // Something always moves, so that no session is over before it was used.
    let moved = 0;
    const time = createFastTime(() => (moved += 1));
    toEnd.push(() => time.stop());
    const service = await startServiceHere(home, {}, time);
    toEnd.push(() => service.stop());
    const { approvals } = service.running;
    const seen = watch(approvals);
    const { session } = await startPairing(
      service.url,
      await newInvite(service, { needsApproval: true }),
      newStaticKey(),
    );
    const asked = request('POST', '/pair/confirm', { json: { name: 'phone', platform: 'test' } });
    const response = await post(`${service.url}/pair-invite`, sealCall(openCall(session!), asked));
    await until(() => approvals.list().length === 1);
    response.on('error', () => undefined).destroy();
    await until(() => approvals.list().length === 0);
    expect(seen).toEqual(['added', 'cancelled']);
  });

  test.each(['cuts its connection', 'loses its key'])(
    'a request that %s: what it asked the owner for is withdrawn',
    async (how) => {
      const approvals = createApprovalQueue({
        now: Date.now,
        setTimer: setProcessTimer,
        newId: () => 'the only one',
        record: () => undefined,
        onError: () => undefined,
      });
      const seen = watch(approvals);
      const asking: Route = {
        method: 'GET',
        path: '/asks',
        access: 'inference',
        maxBodyBytes: 0,
        clientPrefix: '',
        summary: '',
        encodeError: encodeOpenAiError,
        async handle({ signal }) {
          const asked = approvals.request({ kind: 'spend', summary: 'A coin.', lifetimeMs: 60_000, signal });
          return { body: { outcome: await asked?.outcome } };
        },
      };
      const registry = keysOfMemory(Date.now);
      const live = createLiveRequests({ setTimer: setProcessTimer });
      registry.onRevocation((kids) => live.end(kids));
      const { token, key } = registry.create({});
      const { listener } = await createGateway({
        routes: [asking],
        services: { keys: { open: async () => registry } } as unknown as Services,
        guard: { hostnames: [], allowedOrigins: ['*'], machineNames: () => [] },
        peers: untoldPeers,
        access: { requireKeyOnLoopback: true, requestsPerMinute: 600, requestsAtOnce: 16 },
        live,
        runToken: 'the token of this run',
        recorder: createRecorder({ now: Date.now, elapsed: () => 0, keepBodies: false, onEntry: () => undefined }),
        onRefusal: () => undefined,
        onError: () => undefined,
        logLevel: 'silent',
      });
      toEnd.push(async () => {
        const closed = listener.close();
        listener.cut();
        await closed;
      });
      const { port } = await listener.listen({ hosts: ['127.0.0.1'], port: 0 });
      const sent = httpRequest({ port, path: '/asks', host: '127.0.0.1', headers: { 'x-api-key': token } });
      sent.on('response', (response) => response.on('error', () => undefined).resume());
      sent.on('error', () => undefined).end();
      await until(() => approvals.list().length === 1);
      if (how === 'loses its key') await registry.revoke(key.kid);
      else sent.destroy();
      await until(() => approvals.list().length === 0);
      expect(seen).toEqual(['added', 'cancelled']);
    },
  );
});
