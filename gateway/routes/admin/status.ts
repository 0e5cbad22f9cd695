/** `/admin/*` of the server itself: what the command line asks of a running server. */
import { encodeRelay } from '../../relays.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';

type StatusNeeds = Pick<Services, 'control' | 'inference' | 'approvals' | 'relays' | 'now'>;

export const adminStatus = adminRoute({
  method: 'GET',
  path: '/admin/status',
  isPolled: true,
  summary: 'What runs: version, process, loaded models, calls under way, approvals that wait, ways to relays.',
  handle: (_request, { control, inference, approvals, relays, now }: StatusNeeds) => {
    const { residents, inflight } = inference.status();
    return {
      body: {
        version: control.version,
        pid: process.pid,
        uptime_seconds: Math.floor((now() - control.startedAtMs) / 1000),
        resident_models: residents.map(({ id }) => id),
        approvals_waiting: approvals.list().length,
        inflight: Object.fromEntries(inflight),
        relays: relays.list().map(encodeRelay),
      },
    };
  },
});

/** Answers first, then stops: whoever asked can wait for the process to end. */
export const adminShutdown = adminRoute({
  method: 'POST',
  path: '/admin/shutdown',
  summary: 'Stop the service; answers under way get a moment to finish.',
  handle: (_request, { control }: Pick<Services, 'control'>) => {
    control.shutDown();
    return { status: 202, body: { status: 'shutting_down', pid: process.pid } };
  },
});
