/** The hub's own environment variables, which its other clients know, too. */
import { DownloadError } from '../../../core/download/download-error.ts';
import { checkUrl } from '../../../core/download/http-client.ts';
import { CommandError } from '../../command.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const HUB = 'https://huggingface.co';

/** @throws {CommandError} */
export function hubEndpoint(environment: Environment): URL {
  const text = environment['HF_ENDPOINT'] || HUB;
  if (!URL.canParse(text)) throw new CommandError('HF_ENDPOINT is no URL. Unset it, or say https://host.');
  try {
    return checkUrl(new URL(text));
  } catch (error) {
    if (error instanceof DownloadError) throw new CommandError(`HF_ENDPOINT: ${error.message}`);
    throw error;
  }
}

/** @throws {CommandError} that does not repeat it */
export function hubToken(environment: Environment): string | undefined {
  const token = environment['HF_TOKEN']?.trim();
  if (token === undefined || token === '') return undefined;
  if (/^[\u0021-\u007e]+$/.test(token)) return token;
  throw new CommandError('HF_TOKEN holds what no token does. Copy it again from the hub: Settings, Access Tokens.');
}
