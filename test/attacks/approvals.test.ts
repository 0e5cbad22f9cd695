import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import type { DhKeyPair } from '../../channel/crypto.ts';
import { HINT } from '../../channel/hint.ts';
import type { ServiceClock } from '../../service/start.ts';
import { approvalKinds } from '../../service/approvals.ts';
import { createApprovalQueue, type ApprovalEvent, type ApprovalQueue } from '../../core/approvals/approval-queue.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { createRecorder } from '../../gateway/request-log/recorder.ts';
import type { Route, Services } from '../../gateway/route.ts';
import { builtInAgentOnly } from '../../gateway/agent-directory.ts';
import { createListener } from '../../gateway/listener.ts';
import { createInnerCalls } from '../../gateway/sealed/inner-request.ts';
import { createGateway } from '../../gateway/server.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { createFastTime } from '../support/fast-time.ts';
import { newInvite } from '../support/invites.ts';
import {
  confirmPairing,
  newStaticKey,
  openCall,
  pairRaw,
  post,
  request,
  sealCall,
  startPairing,
  textOf,
  type RawAnswer,
} from '../support/raw-device.ts';
import { ask, cancel, codesAt, confirm, fetchChallenge, open, prove } from '../support/raw-discovery.ts';
import { keysOfMemory } from '../support/registry.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

/** The service with its pairings, and its owner at this machine. */
async function startedService(time?: ServiceClock) {
  const home = await temporaryHome();
  toEnd.push(() => removeHome(home));
  const service = await startServiceHere(home, {}, time);
  toEnd.push(() => service.stop());
  const { invites, devices } = await service.running.identity.openPairings();
  const admin = async (method: string, path: string, body?: object) => {
    const init = {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    };
    const answer = await fetch(service.url + path, init);
    return { status: answer.status, body: (await answer.json()) as { error?: { code: string; message: string } } };
  };
  const approve = (id: string) => admin('POST', `/admin/approvals/${id}`, { decision: 'approve' });
  return { service, approvals: service.running.approvals, invites, devices, admin, approve };
}

const errorOf = (answer: RawAnswer) => [
  answer.head?.status,
  (JSON.parse(textOf(answer)) as { error: { code: string } }).error.code,
];

function watch(queue: Pick<ApprovalQueue<never>, 'subscribe'>): readonly string[] {
  const seen: string[] = [];
  queue.subscribe((event: ApprovalEvent) => seen.push(event.type === 'added' ? 'added' : event.outcome));
  return seen;
}

describe('Questions that stay before the owner when whoever asked has left', () => {
  test('a device that asks to be paired and closes its connection: the question is withdrawn', async () => {
    // Something always moves, so that no session is over before it was used.
    let moved = 0;
    const time = createFastTime(() => (moved += 1));
    toEnd.push(() => time.stop());
    const { service, approvals } = await startedService(time);
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
        kinds: approvalKinds,
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
        async handle({ signal }) {
          const asked = approvals.request({ kind: 'spend', summary: 'A coin.', lifetimeMs: 60_000, signal });
          return { body: { outcome: await asked?.outcome } };
        },
      };
      const registry = keysOfMemory(Date.now);
      const live = createLiveRequests({ setTimer: setProcessTimer });
      registry.onRevocation((kids) => live.end(kids));
      const { token, key } = registry.create({});
      const { handle } = createGateway({
        routes: [asking],
        services: { keys: { open: async () => registry } } as unknown as Services,
        guard: { hostnames: [], allowedOrigins: ['*'], machineNames: () => [] },
        peers: untoldPeers,
        agents: builtInAgentOnly,
        inner: createInnerCalls(),
        access: { requireKeyOnLoopback: true, requestsPerMinute: 600, requestsAtOnce: 16 },
        live,
        runToken: 'the token of this run',
        recorder: createRecorder({ now: Date.now, elapsed: () => 0, keepBodies: false, onEntry: () => undefined }),
        onRefusal: () => undefined,
        onError: () => undefined,
        warn: () => {},
      });
      toEnd.push(async () => {
        const closed = listener.close();
        listener.cut();
        await closed;
      });
      const listener = createListener({ setTimer: setProcessTimer });
      const { port } = await listener.listen({ hosts: ['127.0.0.1'], port: 0, handle });
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

describe('Questions that stay before the owner when the answer can change nothing any more', () => {
  const WITHDRAWN = { status: 409, body: { error: { code: 'approval_settled' } } };

  /** Devices that wait for the owner with one invite. */
  async function asking(
    { service, approvals }: Awaited<ReturnType<typeof startedService>>,
    keys: readonly DhKeyPair[],
  ) {
    const code = await newInvite(service, { needsApproval: true });
    const answers = [];
    for (const [number, key] of keys.entries()) {
      const { session } = await startPairing(service.url, code, key);
      answers.push(confirmPairing(service.url, session!));
      await until(() => approvals.list().length === number + 1);
    }
    return { answers, ids: approvals.list().map(({ id }) => id) };
  }

  test('two devices ask with one invite: the yes to one withdraws the other’s question, and it is told why', async () => {
    const started = await startedService();
    const { answers, ids } = await asking(started, [newStaticKey(), newStaticKey()]);
    expect(await started.approve(ids[0]!)).toMatchObject({ status: 200, body: { outcome: 'approved' } });
    expect(started.approvals.list()).toEqual([]);
    expect(await started.approve(ids[1]!)).toMatchObject(WITHDRAWN);
    const [one, other] = await Promise.all(answers);
    expect(one!.head?.status).toBe(200);
    expect(errorOf(other!)).toEqual([409, 'invite_used']);
    expect(started.devices.list()).toHaveLength(1);
  });

  test('an invite is closed while a device waits: its question is withdrawn', async () => {
    const started = await startedService();
    const { answers, ids } = await asking(started, [newStaticKey()]);
    const closed = await started.admin('DELETE', `/admin/invites/${started.invites.list()[0]!.id}`);
    expect(closed.status).toBe(200);
    expect(started.approvals.list()).toEqual([]);
    expect(await started.approve(ids[0]!)).toMatchObject(WITHDRAWN);
    expect(errorOf((await answers[0])!)).toEqual([410, 'invite_over']);
    expect(started.devices.list()).toEqual([]);
  });

  test('a device is paired by something newer while its older invite waits: that question is withdrawn', async () => {
    const started = await startedService();
    const key = newStaticKey();
    const { answers, ids } = await asking(started, [key]);
    await pairRaw(started.service.url, await newInvite(started.service), key);
    expect(started.approvals.list()).toEqual([]);
    expect(await started.approve(ids[0]!)).toMatchObject(WITHDRAWN);
    expect(errorOf((await answers[0])!)).toEqual([410, 'invite_over']);
    expect(started.devices.list()).toHaveLength(1);
  });

  test('a device that was shown a code gives up: its question is withdrawn, at its own word alone', async () => {
    const { service, approvals } = await startedService();
    const challenge = await fetchChallenge(service.url, '127.2.0.1');
    await open(service.url, challenge, '127.2.0.1');
    expect(await cancel(service.url, challenge, '127.2.0.2')).toMatchObject({ hint: HINT.challengeOver });
    expect(approvals.list()).toHaveLength(1);
    expect(await cancel(service.url, challenge, '127.2.0.1')).toMatchObject({ hint: HINT.challengeOver });
    expect(approvals.list()).toEqual([]);
  });
});

describe('Pairings that somebody on the way holds back, and delivers when a newer one is there', () => {
  /** A pairing up to its last message, which is withheld. */
  const ways = {
    'by an invite': async (service: ServiceHere, key: DhKeyPair) => {
      const { session } = await startPairing(service.url, await newInvite(service), key);
      return { deliver: () => confirmPairing(service.url, session!), refused: [410, 'invite_over'] };
    },
    'by a code': async (service: ServiceHere, key: DhKeyPair) => {
      const challenge = await fetchChallenge(service.url, '127.2.0.1');
      const { share } = await open(service.url, challenge, '127.2.0.1');
      const proof = prove(challenge, { code: codesAt(service).at(-1)!, share: share! }, key);
      const { noise } = await ask(service.url, proof.envelope, '127.2.0.1');
      const session = proof.finish(noise!);
      return { deliver: () => confirm(service.url, session), refused: [408, 'approval_expired'] };
    },
  };

  test.each(Object.entries(ways))('%s: it does not take the newer one’s place', async (_, withhold) => {
    const { service, approvals, devices } = await startedService();
    const key = newStaticKey();
    const { deliver, refused } = await withhold(service, key);
    const newer = await pairRaw(service.url, await newInvite(service), key);
    expect(errorOf(await deliver())).toEqual(refused);
    expect(devices.findByKey(key.publicKey)?.id).toBe(newer.grant.deviceId);
    expect(approvals.list()).toEqual([]);
  });

  test.each(Object.entries(ways))('%s: it does not bring a device back that was revoked', async (_, withhold) => {
    const { service, devices } = await startedService();
    const key = newStaticKey();
    const { deliver, refused } = await withhold(service, key);
    const newer = await pairRaw(service.url, await newInvite(service), key);
    await devices.revoke(newer.grant.deviceId);
    expect(errorOf(await deliver())).toEqual(refused);
    expect(devices.findByKey(key.publicKey)).toBeUndefined();
  });
});
