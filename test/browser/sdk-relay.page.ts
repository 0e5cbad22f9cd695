/** What the page runs: a device away from home, in mid-answer when its relay is killed. */
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { connect } from '../../clients/sdk/index.ts';
import { relaysOf } from '../../clients/sdk/relay.ts';

export interface SdkRelayReport {
  readonly echoed: number;
  readonly text: string;
  readonly kind: string | undefined;
}

async function runSdkRelay(device: PairedDevice): Promise<SdkRelayReport> {
  const client = connect(device, { transports: relaysOf(device) });
  const echoed = await client.fetch('/echo', { method: 'POST', body: new Uint8Array(600_000) });
  const { length: echoedBytes } = new Uint8Array(await echoed.arrayBuffer());
  const slow = await client.fetch('/slow', { method: 'POST', body: '{}' });
  const reader = slow.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    // So that it is known out there that something has come; then the relay goes.
    if (text === '') client.fetch('/begun').catch(() => undefined);
    text += next.value;
  }
  const kind = client.path?.kind;
  client.close();
  return { echoed: echoedBytes, text, kind };
}

Object.assign(globalThis, { runSdkRelay });
