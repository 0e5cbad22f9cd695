import { expect, test } from 'vitest';
import { METHODS } from 'node:http';
import { createMetrics } from '../../gateway/metrics.ts';
import { routes } from '../../gateway/routes.ts';
import { parseMetrics } from '../support/prometheus.ts';
import { requestEntry } from '../support/request-entry.ts';

function setUp() {
  let residents = [
    {
      id: 'a',
      model: {
        kind: 'local' as const,
        id: 'a',
        path: '/a.gguf',
        origin: 'folder' as const,
        isBuiltIn: false,
        sizeBytes: 1,
        modifiedAtMs: 0,
      },
      pid: 1,
      contextTokens: 1,
      limitTokens: 1,
      sequences: 1,
      memoryBytes: 1,
      unloadsInMs: undefined,
      keepLoadedMs: undefined,
    },
  ];
  const metrics = createMetrics({
    inference: {
      status: () => ({
        residents,
        inflight: new Map([['a', { running: 1, queued: 2 }]]),
        maxCalls: 64,
        runnerCrashes: 3,
      }),
    },
    connections: () => ({ requests: 4, sockets: 5 }),
    routes,
  });
  const read = async () => parseMetrics(await metrics.text());
  return { metrics, read, unloadAll: () => void (residents = []) };
}

test('requests, durations and tokens are those that were observed', async () => {
  const { metrics, read } = setUp();
  const inference = { model: 'a', inputTokens: 10, cachedTokens: 4, outputTokens: 6, firstTokenMs: 30 };
  metrics.observe(requestEntry({ method: 'POST', route: '/chat/completions', durationMs: 40, inference }));
  metrics.observe(requestEntry({ method: 'POST', route: '/chat/completions', durationMs: 2000, inference }));
  metrics.observe(requestEntry({ method: 'POST', route: '/chat/completions', status: 401 }));
  const samples = await read();
  const route = 'method="POST",route="/chat/completions"';
  expect(samples.get(`postern_http_requests_total{${route},status="200"}`)).toBe(2);
  expect(samples.get(`postern_http_requests_total{${route},status="401"}`)).toBe(1);
  expect(samples.get(`postern_http_request_duration_seconds_count{${route}}`)).toBe(3);
  expect(samples.get(`postern_http_request_duration_seconds_bucket{le="0.05",${route}}`)).toBe(2);
  expect(samples.get(`postern_http_request_duration_seconds_sum{${route}}`)).toBeCloseTo(2.05);
  expect(samples.get('postern_time_to_first_token_seconds_count{model="a"}')).toBe(2);
  expect(
    ['input', 'cached', 'output'].map((kind) => samples.get(`postern_tokens_total{kind="${kind}",model="a"}`)),
  ).toEqual([20, 8, 12]);
});

test('what runs, waits, is loaded and has died, as it is at this moment', async () => {
  const { read, unloadAll } = setUp();
  const samples = await read();
  expect(samples.get('postern_inference_running{model="a"}')).toBe(1);
  expect(samples.get('postern_inference_waiting{model="a"}')).toBe(2);
  expect(samples.get('postern_model_resident{model="a"}')).toBe(1);
  expect(samples.get('postern_runner_crashes_total{}')).toBe(3);
  expect(samples.get('postern_http_requests_in_flight{}')).toBe(4);
  expect(samples.get('postern_http_sockets{}')).toBe(5);
  expect(samples.get('process_start_time_seconds{}')).toBeGreaterThan(0);
  unloadAll();
  const later = await read();
  expect(later.has('postern_model_resident{model="a"}')).toBe(false);
  expect(later.get('postern_runner_crashes_total{}')).toBe(3);
});

test('whatever clients send, the labels stay few', async () => {
  const { metrics, read } = setUp();
  for (let n = 0; n < 200; n += 1) {
    metrics.observe(requestEntry({ route: undefined, path: `/canary-${n}`, method: `M${n}`, status: 404 }));
  }
  const samples = await read();
  expect(samples.get('postern_http_requests_total{method="other",route="unknown",status="404"}')).toBe(200);
  expect([...samples.keys()].filter((key) => key.includes('canary') || key.includes('M1'))).toEqual([]);
});

test('every method at every route adds no more than the rows of the route table', async () => {
  const { metrics, read } = setUp();
  const paths = new Set(routes.map(({ path }) => path));
  for (const route of paths) {
    for (const method of METHODS) metrics.observe(requestEntry({ route, method, status: 405 }));
  }
  const series = [...(await read()).keys()].filter((key) => key.startsWith('postern_http_requests_total'));
  const rowsWithGet = routes.filter(({ method }) => method === 'GET').length;
  // Besides: HEAD where there is GET, and one label for all others.
  expect(series).toHaveLength(routes.length + rowsWithGet + paths.size);
});
