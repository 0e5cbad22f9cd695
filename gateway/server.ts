/** The only door: the one way that every request takes, whichever adapter brings it. */
import type { RequestListener } from 'node:http';
import { describeError } from '../core/describe-error.ts';
import { setProcessTimer } from '../core/timer.ts';
import type { AgentDirectory } from './agent-directory.ts';
import type { GuardSettings } from './guard.ts';
import { createRequestListener } from './http/http-exchange.ts';
import { createUpgradeListener, type UpgradeListener } from './http/web-socket.ts';
import { createIdentifier, type AccessSettings } from './identify.ts';
import type { LiveRequests } from './live-requests.ts';
import { createLocator } from './locate.ts';
import type { PeerProcesses } from './peer-process.ts';
import { createAuthorizer } from './pipeline/authorize.ts';
import { createPipeline, type PipelineOptions } from './pipeline/pipeline.ts';
import { createRouter } from './pipeline/router.ts';
import type { Route } from './route.ts';
import type { InnerCalls } from './sealed/inner-request.ts';

export interface GatewayOptions extends Omit<PipelineOptions, 'router' | 'authorize' | 'elapsed'> {
  readonly routes: readonly Route[];
  readonly guard: GuardSettings;
  readonly peers: PeerProcesses;
  readonly access: AccessSettings;
  readonly live: LiveRequests;
  readonly agents: AgentDirectory;
  /** Is led to the pipeline. */
  readonly inner: Pick<InnerCalls, 'leadTo'>;
  /** Proves to this run that a request comes from its owner; never logged, never sent anywhere. */
  readonly runToken: string;
}

/** What a listener is to hand its requests to. */
export interface Gateway {
  readonly handle: RequestListener;
  readonly upgrade: UpgradeListener;
}

export function createGateway(options: GatewayOptions): Gateway {
  const elapsed = (): number => performance.now();
  const identifier = createIdentifier({ ...options, keys: options.services.keys, settings: options.access, elapsed });
  const authorize = createAuthorizer({ ...options, locate: createLocator(options), identifier });
  const pipeline = createPipeline({ ...options, router: createRouter(options.routes), authorize, elapsed });
  options.inner.leadTo(pipeline);
  const onError = (error: unknown): void => {
    options.onError(error);
    options.warn('an answer broke off', describeError(error));
  };
  return {
    handle: createRequestListener(pipeline, onError),
    upgrade: createUpgradeListener(pipeline, { setTimer: setProcessTimer, onError }),
  };
}
