/** A gateway with the real route table and nothing behind it: for what is decided before any handler runs. */
import { builtInAgentOnly } from '../../gateway/agent-directory.ts';
import { createGateway } from '../../gateway/server.ts';
import { createInnerCalls, type RunInner } from '../../gateway/sealed/inner-request.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { createRecorder } from '../../gateway/request-log/recorder.ts';
import { routes } from '../../gateway/routes.ts';
import type { Services } from '../../gateway/route.ts';

export function runInBareGateway(): RunInner {
  const inner = createInnerCalls();
  createGateway({
    routes,
    services: {} as Services,
    guard: { hostnames: [], allowedOrigins: ['*'], machineNames: () => [] },
    peers: untoldPeers,
    agents: builtInAgentOnly,
    inner,
    access: { requireKeyOnLoopback: false, requestsPerMinute: 600, requestsAtOnce: 16 },
    live: createLiveRequests({ setTimer: () => () => {} }),
    runToken: 'the token of this run',
    recorder: createRecorder({ now: Date.now, elapsed: () => 0, keepBodies: false, onEntry: () => {} }),
    onRefusal: () => {},
    onError: () => {},
    warn: () => {},
  });
  return inner.run;
}
