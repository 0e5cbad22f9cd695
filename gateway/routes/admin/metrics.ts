/** `GET /metrics`, for a Prometheus on this machine. */
import { NO_BODY_BYTES } from '../../bounds.ts';
import type { Route } from '../../route.ts';

export const metrics: Route = {
  method: 'GET',
  path: '/metrics',
  access: 'admin',
  isPolled: true,
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: "The service's figures, in Prometheus' text format.",
  handle: async (_request, services) => ({
    headers: { 'content-type': services.metrics.contentType },
    body: await services.metrics.text(),
  }),
};
