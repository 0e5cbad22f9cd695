/** `GET /metrics`, for a Prometheus on this machine. */
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';

export const metrics = adminRoute({
  method: 'GET',
  path: '/metrics',
  isPolled: true,
  summary: "The service's figures, in Prometheus' text format.",
  handle: async (_request, services: Pick<Services, 'metrics'>) => ({
    headers: { 'content-type': services.metrics.contentType },
    body: await services.metrics.text(),
  }),
});
