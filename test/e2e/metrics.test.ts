/** `GET /metrics`: its figures are what was done. */
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseMetrics } from '../support/prometheus.ts';
import { endless, lastRow, post, readLog, user } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';
import { STYLES, tokensTold } from '../support/wire-styles.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.stop());

async function readMetrics(): Promise<ReadonlyMap<string, number>> {
  return parseMetrics(await (await fetch(`${server.url}/metrics`)).text());
}

test('requests, tokens and times of what was asked', async () => {
  const told = { input: 0, cached: 0, output: 0 };
  const style = STYLES['OpenAI chat']!;
  for (const body of [style.ask, { ...style.ask, ...style.streamed }, { ...style.ask, ...style.limit }]) {
    const tokens = tokensTold(await (await post(server, style.path, body)).text(), style);
    told.input += tokens['input_tokens']!;
    told.cached += tokens['cached_tokens']!;
    told.output += tokens['output_tokens']!;
  }
  await (await post(server, style.path, { ...user('Hello'), model: 'canary-model' })).text();
  for (let n = 0; n < 5; n += 1) await (await fetch(`${server.url}/v1/models/canary-${n}`)).text();
  await (await fetch(`${server.url}/canary`)).text();
  const response = await fetch(`${server.url}/metrics`);
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  expect(text).not.toContain('canary');
  const samples = parseMetrics(text);
  const requests = (labels: string) => samples.get(`postern_http_requests_total{${labels}}`);
  expect(requests('method="POST",route="/chat/completions",status="200"')).toBe(3);
  expect(requests('method="POST",route="/chat/completions",status="404"')).toBe(1);
  expect(requests('method="GET",route="/models/*",status="404"')).toBe(5);
  expect(requests('method="GET",route="unknown",status="404"')).toBe(1);
  for (const [kind, count] of Object.entries(told)) {
    expect(samples.get(`postern_tokens_total{kind="${kind}",model="foundation"}`)).toBe(count);
  }
  expect(told.cached).toBeGreaterThan(0);
  expect(samples.get('postern_time_to_first_token_seconds_count{model="foundation"}')).toBe(3);
  expect(samples.get('postern_http_request_duration_seconds_count{method="POST",route="/chat/completions"}')).toBe(4);
  expect(samples.get('postern_model_resident{model="foundation"}')).toBe(1);
  expect(samples.get('postern_runner_crashes_total{}')).toBe(0);
  expect(samples.get('postern_http_requests_in_flight{}')).toBe(1);
  expect(samples.get('process_resident_memory_bytes{}')).toBeGreaterThan(0);
});

test('what runs and what waits, while it does', async () => {
  const leave = new AbortController();
  const answers = [1, 2, 3].map(() =>
    post(server, '/v1/chat/completions', endless, { signal: leave.signal }).catch(() => undefined),
  );
  const both = (samples: ReadonlyMap<string, number>) => [
    samples.get('postern_inference_running{model="foundation"}'),
    samples.get('postern_inference_waiting{model="foundation"}'),
  ];
  await until(async () => both(await readMetrics()).join() === '1,2');
  leave.abort();
  await Promise.all(answers);
  await until(async () => both(await readMetrics()).join() === ',');
  const left = 'postern_http_requests_total{method="POST",route="/chat/completions",status="499"}';
  expect((await readMetrics()).get(left)).toBe(3);
});

test('an engine that dies in mid-stream is an error, in the log and in the figures', async () => {
  const response = await post(server, '/v1/chat/completions', { ...endless, stream: true });
  const reader = response.body!.getReader();
  await reader.read();
  const { pid } = server.process;
  process.kill(Number((await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim()), 'SIGKILL');
  while (!(await reader.read()).done);
  expect(await lastRow(server)).toMatchObject({ status: 200, finish_reason: 'error', error_code: 'engine_failed' });
  expect((await readLog(server, 'errors=true')).stats).toMatchObject({ requests: 1, errors: 1, success_rate: 0 });
  expect((await readMetrics()).get('postern_runner_crashes_total{}')).toBe(1);
});
