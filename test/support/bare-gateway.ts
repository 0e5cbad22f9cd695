/** A gateway with the real route table and nothing behind it: for what is decided before any handler runs. */
import { builtInAgentOnly } from '../../gateway/agent-directory.ts';
import { createGateway, type Gateway } from '../../gateway/server.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { createRecorder } from '../../gateway/request-log/recorder.ts';
import { routes } from '../../gateway/routes.ts';
import type { Services } from '../../gateway/route.ts';

export function createGatewayOf(): Gateway {
  return createGateway({
    routes,
    services: {} as Services,
    guard: { hostnames: [], allowedOrigins: ['*'], machineNames: () => [] },
    peers: untoldPeers,
    agents: builtInAgentOnly,
    access: { requireKeyOnLoopback: false, requestsPerMinute: 600, requestsAtOnce: 16 },
    live: createLiveRequests({ setTimer: () => () => {} }),
    runToken: 'the token of this run',
    recorder: createRecorder({ now: Date.now, elapsed: () => 0, keepBodies: false, onEntry: () => {} }),
    onRefusal: () => {},
    onError: () => {},
    warn: () => {},
  });
}
