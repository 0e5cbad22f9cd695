/** What every area of the service is opened with, and how one says that it can't be. */
import type { ChannelServerOptions } from '../gateway/sealed/channel-server.ts';
import type { CloseStack } from './close-stack.ts';

/** What a service needs of whoever starts it. */
export interface ServiceContext {
  /** `SVC_HOME`. */
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** A line for the owner. */
  readonly say: (words: string) => void;
}

/** The clock of sealed sessions and calls. */
export type ServiceClock = Pick<ChannelServerOptions, 'now' | 'elapsed' | 'setTimer'>;

/** `Slice` is what the area sees of the settings: those that its rooms declare. */
export interface Start<Slice = unknown> extends ServiceContext, Pick<CloseStack, 'onClose'> {
  /** Those that the service started with. */
  readonly settings: Slice;
  /** Those of this moment, for what needs no restart to follow them. */
  readonly currentSettings: () => Promise<Slice>;
  readonly clock: ServiceClock;
  /** Fires when the service is to end: nobody new comes in, and nobody waits for the owner any more. */
  readonly stopping: AbortSignal;
}

/** Why the service does not start, for its owner. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
