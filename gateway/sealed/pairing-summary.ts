/** What the owner reads of a device that wants to be paired. */
import { quoted } from '../../core/printable.ts';
import type { DeviceDescription } from '../../identity/pairing.ts';
import type { SealedSource } from './source.ts';

interface SummaryOptions {
  readonly description: DeviceDescription;
  readonly source: Pick<SealedSource, 'transport' | 'clientKey'>;
  /** The agent that it would be good for; every one, where none is named. */
  readonly agentIndex: number | undefined;
}

/** The device's own words are quoted, and said to be its own: a thief or a stranger chooses them too. */
export function summaryOf({ description: { name, platform, model }, source, agentIndex }: SummaryOptions): string {
  const what = model === undefined ? quoted(platform) : `${quoted(platform)}, ${quoted(model)}`;
  const from = source.transport === 'relay' ? 'through the relay' : `from ${source.clientKey}`;
  const scope = agentIndex === undefined ? 'everything' : `agent ${agentIndex}`;
  return `pair a device that calls itself ${quoted(name)} (${what}), ${from}, for ${scope}`;
}
