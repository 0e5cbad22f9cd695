/** A client of the SDK at a gateway of the test's own, and what most tests of it ask and answer. */
import { onTestFinished } from 'vitest';
import type { ConnectOptions, PairedDevice, PosternClient } from '../../clients/sdk/index.ts';
import { connect, PosternError } from '../../clients/sdk/index.ts';
import type { Handler, SealedGateway, SealedGatewayOptions } from './sealed-gateway.ts';
import { startSealedGateway } from './sealed-gateway.ts';
import { until } from './wait.ts';

/** Until the test ends. */
export async function start(handle: Handler, options: SealedGatewayOptions = {}): Promise<SealedGateway> {
  const gateway = await startSealedGateway({ handle, ...options });
  onTestFinished(() => gateway.close());
  return gateway;
}

export function clientOf(gateway: SealedGateway, options?: ConnectOptions, device?: PairedDevice): PosternClient {
  const client = connect(device ?? gateway.newDevice(), options);
  onTestFinished(() => client.close());
  return client;
}

/** The code that it fails with; another error, or its value, as it is. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    return await promise;
  } catch (error) {
    return error instanceof PosternError ? error.code : error;
  }
}

/** Answers with what was asked. */
export const echo: Handler = ({ method, path, query, headers, body }) => ({
  headers: [['content-type', 'application/json']],
  body: JSON.stringify({ method, path, query, headers, body: new TextDecoder().decode(body) }),
});

/** A request that has an effect. */
export const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };

/** Events as a model makes them, each when it is asked for. */
async function* words(count: number): AsyncGenerator<string> {
  for (let at = 0; at < count; at++) {
    const chunk = {
      id: 'x',
      object: 'chat.completion.chunk',
      created: 0,
      model: 'm',
      choices: [{ index: 0, delta: { content: `w${at} ` }, finish_reason: null }],
    };
    yield `data: ${JSON.stringify(chunk)}\n\n`;
  }
  yield 'data: [DONE]\n\n';
}

/** An answer of five events. */
export const sse: Handler = () => ({ headers: [['content-type', 'text/event-stream']], body: words(5) });

/** A body whose pieces the test hands out one by one. It never ends by itself. */
export function tap(): { readonly body: AsyncIterable<string>; readonly push: (piece: string) => void } {
  const waiting: string[] = [];
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  async function* flow(): AsyncGenerator<string> {
    while (!ending.signal.aborted) yield await until(() => waiting.shift() ?? (ending.signal.aborted ? '' : undefined));
  }
  return { body: flow(), push: (piece) => void waiting.push(piece) };
}
