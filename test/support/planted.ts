/** Words that are said by a laptop to a gateway in each place where one can be, to be looked for on the way. */
import type { Machine } from './network.ts';
import { fetchOn } from './network.ts';
import { runProgram } from './requests.ts';
import type { WireClientsInput } from './wire-clients-program.ts';

/** Planted, each where it says. */
export const planted = {
  path: 'CanaryInThePath',
  query: 'CanaryInTheQuery',
  header: 'canary-in-a-header',
  agent: 'CanaryOfAnAgent',
  idempotencyKey: 'CanaryOfAnAction',
  body: 'CanaryInTheBody',
  clientKey: 'CanaryOfAClientsKey',
  device: 'CanaryOfADevice',
  model: 'canary-of-a-model',
};

/** Never asked for, and in every answer of their kind. */
export const answered = {
  chat: 'chat.completion',
  stream: 'chat.completion.chunk',
  anthropic: 'content_block_delta',
  text: 'The capital of France is',
  tool: '"get_weather"',
};

export const bytesOf = (secrets: Readonly<Record<string, string | Uint8Array>>): ReadonlyMap<string, Buffer> =>
  new Map(Object.entries(secrets).map(([name, secret]) => [name, Buffer.from(secret)]));

/** What official clients are told there, the words among what they say. */
export function askClientsOn({ within }: Pick<Machine, 'within'>, url: string): Promise<Record<string, unknown>> {
  return runProgram(within, 'wire-clients-program', {
    url,
    model: planted.model,
    word: planted.body,
    key: planted.clientKey,
  } satisfies WireClientsInput);
}

/** One request with a word in every other place. @returns its status, which is a refusal */
export async function sayAllOn(machine: Machine, url: string): Promise<number> {
  const { status } = await fetchOn(machine, `${url}/v1/models/${planted.path}?q=${planted.query}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-beta': planted.header,
      'x-service-agent-id': planted.agent,
      'idempotency-key': planted.idempotencyKey,
      'x-api-key': planted.clientKey,
    },
    body: JSON.stringify({ model: planted.model, prompt: planted.body }),
  });
  return status;
}
