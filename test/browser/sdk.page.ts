/** What the page runs: a device that was paired elsewhere calls its gateway from another origin. */
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { connect } from '../../clients/sdk/index.ts';

export interface SdkReport {
  readonly status: number;
  readonly pieces: number;
  readonly text: string;
}

async function runSdk(device: PairedDevice): Promise<SdkReport> {
  const client = connect(device);
  const form = new FormData();
  form.set('prompt', 'hello');
  const response = await client.fetch('/v1/echo', { method: 'POST', body: form });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  let pieces = 0;
  for (;;) {
    const next = await reader?.read();
    if (next === undefined || next.done) break;
    text += next.value;
    pieces++;
  }
  client.close();
  return { status: response.status, pieces, text };
}

Object.assign(globalThis, { runSdk });
