/** The hub's own environment variables, which its other clients know, too. */
import { DownloadError } from './download-error.ts';
import { checkUrl, createHttpClient, type HttpClient } from './http-client.ts';
import { createHub, type Hub } from './hub.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const HUB = 'https://huggingface.co';

export interface HubAccess {
  readonly endpoint: URL;
  readonly hub: Hub;
  readonly http: HttpClient;
  readonly hasToken: boolean;
}

/** @throws {DownloadError} `bad_environment`, which does not repeat what the token is */
export function hubAccess(environment: Environment): HubAccess {
  const endpoint = hubEndpoint(environment);
  const token = hubToken(environment);
  const hasToken = token !== undefined;
  const http = createHttpClient({ token: token === undefined ? undefined : { origin: endpoint.origin, value: token } });
  return { endpoint, http, hasToken, hub: createHub({ endpoint, http, hasToken }) };
}

function hubEndpoint(environment: Environment): URL {
  const text = environment['HF_ENDPOINT'] || HUB;
  if (!URL.canParse(text)) throw badEnvironment('HF_ENDPOINT is no URL. Unset it, or say https://host.');
  try {
    return checkUrl(new URL(text));
  } catch (error) {
    if (error instanceof DownloadError) throw badEnvironment(`HF_ENDPOINT: ${error.message}`);
    throw error;
  }
}

function hubToken(environment: Environment): string | undefined {
  const token = environment['HF_TOKEN']?.trim();
  if (token === undefined || token === '') return undefined;
  if (/^[\u0021-\u007e]+$/.test(token)) return token;
  throw badEnvironment('HF_TOKEN holds what no token does. Copy it again from the hub: Settings, Access Tokens.');
}

function badEnvironment(message: string): DownloadError {
  return new DownloadError('bad_environment', message);
}
