/** The gateway over all areas. */
import { createResponseStore } from '../core/responses/response-store.ts';
import { builtInAgentOnly } from '../gateway/agent-directory.ts';
import { withLateStreams } from '../gateway/late-streams.ts';
import { withSlowRefusals } from '../gateway/slow-refusals.ts';
import type { RequestLog } from '../gateway/request-log/request-log.ts';
import type { ServerControl, Services } from '../gateway/route.ts';
import type { ConnectionCounts } from '../gateway/metrics.ts';
import type { Pulls } from '../gateway/pulls.ts';
import { routes } from '../gateway/routes.ts';
import { createBackgroundResponses } from '../gateway/routes/responses/background.ts';
import { createGateway, type Gateway, type GatewayOptions } from '../gateway/server.ts';
import type { Approvals } from './approvals.ts';
import type { IdentityService } from './identity-service.ts';
import type { Models } from './models.ts';
import { callerOptions } from './options.ts';
import { openRecording } from './request-recording.ts';
import type { RequestLogSettings } from '../gateway/request-log/settings.ts';
import type { AccessSettings, PairingSettings, ServerSettings, WireSettings } from '../gateway/settings.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

interface GatewayParts extends Pick<GatewayOptions, 'inner' | 'live' | 'peers' | 'runToken'> {
  readonly kept: Storage;
  readonly models: Models;
  readonly pulls: Pulls;
  readonly approval: Approvals;
  readonly identity: IdentityService;
  readonly requestLog: RequestLog;
  readonly reach: Pick<Services, 'gatewayFacts' | 'channelServer' | 'relays'>;
  readonly control: ServerControl;
}

type Settings = ServerSettings & WireSettings & AccessSettings & PairingSettings & RequestLogSettings;

/** @returns what the listener hands its requests to */
export function openGateway({ settings, currentSettings, clock, say }: Start<Settings>, parts: GatewayParts): Gateway {
  const { kept, models, pulls, approval, identity, requestLog, reach, control, ...rest } = parts;
  const { database, storage, now } = kept;
  const connections = (): ConnectionCounts => control.connections();
  const { metrics, recorder } = openRecording(settings, {
    routes,
    requestLog,
    inference: models.inference,
    connections,
  });
  return createGateway({
    ...rest,
    routes,
    services: {
      ...models,
      pulls,
      ...approval,
      ...reach,
      inference: withLateStreams(withSlowRefusals(models.inference, clock), clock.setTimer),
      responses: createResponseStore({ database, now }),
      backgroundResponses: createBackgroundResponses(),
      keys: identity,
      appOrigin: settings['pairing.appOrigin'] ?? undefined,
      announcesTools: async () => (await currentSettings())['ollama.announceTools'],
      requestLog,
      metrics,
      control,
      storage,
      now,
    },
    ...callerOptions(settings),
    agents: builtInAgentOnly,
    recorder,
    onRefusal: (reason) => identity.refusals.note(reason),
    onError: (error) => storage.note(error),
    warn: (message, details) => say(`${message}: ${JSON.stringify(details)}`),
  });
}
