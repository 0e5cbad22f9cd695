/**
 * What a route is: who may call it, how large its body may be, and a handler that is a plain function from a request to a
 * reply, so that it can be tested without a port.
 */
import type * as z from 'zod';
import type { ApprovalQueue } from '../core/approvals/approval-queue.ts';
import type { ModelCatalog } from '../core/inference/catalog.ts';
import type { Inference } from '../core/inference/inference.ts';
import type { ModelFolder } from '../core/inference/model-folder.ts';
import type { StorageHealth } from '../storage/storage-health.ts';
import type { ResponseStore } from '../core/responses/response-store.ts';
import type { GatewayFacts } from '../identity/pairing.ts';
import type { GatewayKey } from '../identity/secret-keys.ts';
import type { AccessKeySource } from './access-key-source.ts';
import type { ApprovalFeed } from './approval-feed.ts';
import type { Caller } from './caller.ts';
import type { ConnectionCounts, Metrics } from './metrics.ts';
import type { AccessClass, AgentReach } from './policy.ts';
import type { Pulls } from './pulls.ts';
import type { Relays } from './relays.ts';
import type { BackgroundResponses } from './routes/responses/background.ts';
import type { RequestLog } from './request-log/request-log.ts';
import type { ChannelServer } from './sealed/channel-server.ts';

/** Of routes; a GET answers HEAD too. */
export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

interface AnyRoute<Needs> {
  readonly method: Method;
  /** Without any prefix alias; `:name` is one segment, a final `*` is all that follows. */
  readonly path: string;
  /** Checked before the caller is even identified. */
  readonly maxBodyBytes: number;
  /** Where the clients of this route's style look for it. It is served under the other prefixes, too. */
  readonly clientPrefix: '' | '/v1' | '/api';
  /** A sentence for the OpenAPI document. */
  readonly summary: string;
  /** What the handler parses the body with, for the OpenAPI document. */
  readonly body?: z.ZodType;
  /** The handler gets the body as it comes, in `stream`, and not before. */
  readonly readsStream?: true;
  /** Asked again and again for how things are: the owner's requests that are answered leave no row in the request log. */
  readonly isPolled?: true;
  /** Absent: the route belongs to the contract, but this version does not have it yet (501, after policy). */
  readonly handle?: (request: GatewayRequest, services: Needs) => Promise<Reply> | Reply;
}

/**
 * Its handler says what it needs of the services; the table of routes needs all of them. `agentParameter` is the
 * parameter of its path that names the agent it acts on. Work is begun for an agent only, so dispatch has one.
 */
export type Route<Needs = Services> = AnyRoute<Needs> &
  (
    | { readonly access: Exclude<AccessClass, 'dispatch'>; readonly agentParameter?: string }
    | { readonly access: 'dispatch'; readonly agentParameter: string }
  );

export interface GatewayRequest {
  readonly caller: Caller;
  /** How much this caller may see, where an access class knows degrees. */
  readonly view: 'full' | 'summary';
  /** Whose tools, tasks and memory it may touch. */
  readonly agents: AgentReach;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The body's value, on a route that reads no stream. @throws {RequestError} `bad_request` if it is no JSON */
  readonly json: () => unknown;
  /** How long it was. */
  readonly bodyBytes: number;
  /** The body of a route that reads one. @throws {RequestError} `body_too_large` or `request_timeout`, when that shows */
  readonly stream: AsyncIterable<Uint8Array>;
  /** Whom limits count the request under; see `sourceOf`. */
  readonly clientKey: string;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  /** Begins work that goes on when the request is over. */
  readonly detach: () => Detached;
}

/** Work that a request began and that goes on when the request is over. */
export interface Detached {
  /** As this work uses them. */
  readonly services: Services;
  /** Fires when the work has to end. */
  readonly signal: AbortSignal;
  /** To be called once, when it has ended. */
  end(): void;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON; an iterable is streamed, piece by piece, as fast as the client takes it. */
  readonly body: object | string | AsyncIterable<string | Uint8Array>;
  /** Fires when the connection is to be cut in the middle of a stream, even though its client does not read. */
  readonly cut?: AbortSignal;
  /** With a status of 101: a WebSocket opens, and each message is a request to this route. */
  readonly messages?: Route;
  /** The request log leaves it out: what it carried has entries of its own. */
  readonly isCarrier?: boolean;
}

/** What handlers may use. Built once, by whoever wires the program together. */
export interface Services {
  readonly inference: Inference;
  readonly catalog: ModelCatalog;
  readonly responses: ResponseStore;
  readonly backgroundResponses: BackgroundResponses;
  readonly keys: AccessKeySource;
  /** How the gateway with this key names itself to devices, and where they find it. */
  readonly gatewayFacts: (gatewayKey: GatewayKey) => GatewayFacts;
  readonly relays: Relays;
  /** Where the app is served that reads the links of invites. */
  readonly appOrigin: string | undefined;
  /** The owner's setting, as it is now. */
  readonly announcesTools: () => Promise<boolean>;
  readonly requestLog: Pick<RequestLog, 'list' | 'stats' | 'clear'>;
  readonly channelServer: Pick<ChannelServer, 'handle' | 'challenge'>;
  readonly pulls: Pulls;
  readonly modelFolder: ModelFolder;
  readonly approvals: Pick<ApprovalQueue<never>, 'list' | 'decide'>;
  readonly approvalFeed: Pick<ApprovalFeed, 'open'>;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly control: ServerControl;
  readonly storage: Pick<StorageHealth, 'trouble' | 'note'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** What the running server tells about itself, and lets its owner do. */
export interface ServerControl {
  readonly version: string;
  readonly startedAtMs: number;
  connections(): ConnectionCounts;
  /** Since when no device is let in, in milliseconds since 1970, where the channel's cryptography fails. */
  channelFailedAtMs(): number | undefined;
  /** Begins a clean shutdown; returns at once. */
  shutDown(): void;
}
