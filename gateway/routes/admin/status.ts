/** `/admin/*` of the server itself: what the command line asks of a running server. */
import { NO_BODY_BYTES } from '../../bounds.ts';
import { encodeRelay } from '../../relays.ts';
import type { Route } from '../../route.ts';

export const adminStatus: Route = {
  method: 'GET',
  path: '/admin/status',
  access: 'admin',
  isPolled: true,
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: 'What runs: version, process, loaded models, calls under way, approvals that wait, ways to relays.',
  handle: (_request, { control, inference, approvals, relays, now }) => {
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
};

/** Answers first, then stops: whoever asked can wait for the process to end. */
export const adminShutdown: Route = {
  method: 'POST',
  path: '/admin/shutdown',
  access: 'admin',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: 'Stop the service; answers under way get a moment to finish.',
  handle: (_request, { control }) => {
    control.shutDown();
    return { status: 202, body: { status: 'shutting_down', pid: process.pid } };
  },
};
