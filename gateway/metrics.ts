/**
 * The figures behind `GET /metrics`, for Prometheus. A label's values are few and our own: rows of the route table,
 * ids of installed models, statuses. What a client made up never becomes one.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Inference } from '../core/inference/inference.ts';
import type { RequestEntry } from './request-log/request-entry.ts';

/** In seconds: a list of models at one end, a long answer at the other. */
const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const FIRST_TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

/** Node takes some thirty methods. Those that a route does not have share a label, as do the rarer ones at no route. */
const OTHER_METHOD = 'other';
const METHODS_OF_NO_ROUTE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']);

export interface Metrics {
  /** What `text` gives. */
  readonly contentType: string;
  observe(entry: RequestEntry): void;
  /** Everything as it is now, in Prometheus' text format. */
  text(): Promise<string>;
}

export interface ConnectionCounts {
  /** Requests being answered now. */
  readonly requests: number;
  readonly sockets: number;
}

export interface MetricsSources {
  readonly inference: Pick<Inference, 'status'>;
  readonly connections: () => ConnectionCounts;
  readonly routes: readonly { readonly method: string; readonly path: string }[];
}

export function createMetrics(sources: MetricsSources): Metrics {
  const registry = new Registry();
  const observe = addRequestMetrics(registry, methodsByRoute(sources.routes));
  addGauges(registry, sources);
  let hasProcess = false;
  return {
    contentType: registry.contentType,
    observe,
    text: () => {
      // Measuring the event loop wakes the process a hundred times a second: only for those who look.
      if (!hasProcess) collectDefaultMetrics({ register: registry });
      hasProcess = true;
      return registry.metrics();
    },
  };
}

type MethodsByRoute = ReadonlyMap<string | undefined, ReadonlySet<string>>;

function methodsByRoute(routes: MetricsSources['routes']): MethodsByRoute {
  const methods = new Map<string | undefined, Set<string>>();
  for (const { path, method } of routes) {
    const own = methods.get(path) ?? new Set();
    methods.set(path, own.add(method));
    if (method === 'GET') own.add('HEAD');
  }
  return new Map<string | undefined, ReadonlySet<string>>(methods).set(undefined, METHODS_OF_NO_ROUTE);
}

function addRequestMetrics(registry: Registry, methodsOf: MethodsByRoute): Metrics['observe'] {
  const registers = [registry];
  const requests = new Counter({
    name: 'postern_http_requests_total',
    help: 'Requests answered; status 499: the client left before.',
    labelNames: ['route', 'method', 'status'] as const,
    registers,
  });
  const durations = new Histogram({
    name: 'postern_http_request_duration_seconds',
    help: 'From the arrival of a request to the end of its answer.',
    labelNames: ['route', 'method'] as const,
    buckets: DURATION_BUCKETS,
    registers,
  });
  const firstTokens = new Histogram({
    name: 'postern_time_to_first_token_seconds',
    help: 'From the arrival of a request to the first piece of a model’s answer.',
    labelNames: ['model'] as const,
    buckets: FIRST_TOKEN_BUCKETS,
    registers,
  });
  const tokens = new Counter({
    name: 'postern_tokens_total',
    help: 'Tokens read (input), read before and still there (cached, a part of input), and written (output).',
    labelNames: ['model', 'kind'] as const,
    registers,
  });
  return ({ inference, ...entry }) => {
    const route = entry.route ?? 'unknown';
    const method = methodsOf.get(entry.route)?.has(entry.method) === true ? entry.method : OTHER_METHOD;
    requests.inc({ route, method, status: entry.status });
    durations.observe({ route, method }, entry.durationMs / 1000);
    const { model, firstTokenMs, inputTokens = 0, cachedTokens = 0, outputTokens = 0 } = inference;
    if (model === undefined) return;
    if (firstTokenMs !== undefined) firstTokens.observe({ model }, firstTokenMs / 1000);
    tokens.inc({ model, kind: 'input' }, inputTokens);
    tokens.inc({ model, kind: 'cached' }, cachedTokens);
    tokens.inc({ model, kind: 'output' }, outputTokens);
  };
}

/** What is looked up when somebody asks. */
function addGauges(registry: Registry, { inference, connections }: MetricsSources): void {
  const inflight = () => [...inference.status().inflight];
  const gauges = [
    gauge('postern_inference_running', 'Calls that a model is answering.', () =>
      inflight().map(([model, { running }]) => ({ model, value: running })),
    ),
    gauge('postern_inference_waiting', 'Calls that wait for their turn.', () =>
      inflight().map(([model, { queued }]) => ({ model, value: queued })),
    ),
    gauge('postern_model_resident', '1 for each model that is loaded.', () =>
      inference.status().residents.map(({ id }) => ({ model: id, value: 1 })),
    ),
    gauge('postern_http_sockets', 'Open connections.', () => [{ value: connections().sockets }]),
    gauge('postern_http_requests_in_flight', 'Requests being answered, this one among them.', () => [
      { value: connections().requests },
    ]),
    new Counter({
      name: 'postern_runner_crashes_total',
      help: 'Model runners that ended without having been told to.',
      registers: [],
      collect() {
        this.reset();
        this.inc(inference.status().runnerCrashes);
      },
    }),
  ];
  for (const one of gauges) registry.registerMetric(one);
}

interface Sample {
  readonly model?: string;
  readonly value: number;
}

function gauge(name: string, help: string, read: () => readonly Sample[]): Gauge {
  return new Gauge({
    name,
    help,
    labelNames: ['model'],
    registers: [],
    collect() {
      this.reset();
      for (const { value, ...labels } of read()) this.set(labels, value);
    },
  });
}
