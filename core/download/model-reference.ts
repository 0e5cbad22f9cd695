/** What a user names when they want a model: `hf:org/repo[:quant]`, or the URL of a file. */
import { DownloadError } from './download-error.ts';
import { checkUrl } from './http-client.ts';

export type ModelReference =
  | {
      readonly kind: 'hub';
      /** `org/repo`. */
      readonly repository: string;
      /** A quantization such as `Q4_K_M`, or the name of a file. */
      readonly wanted?: string;
    }
  | { readonly kind: 'url'; readonly url: URL };

/** The hub's own rule for the two halves of a repository's name. */
const REPOSITORY = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}\/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}$/;

/** A file's page and its address, and the page of a repository. */
const HUB_PATH = /^\/([^/]+\/[^/]+)(?:\/(?:resolve|blob)\/main\/(.+\.gguf)|\/?|\/tree\/main\/?)$/;

/**
 * @param hubOrigin so that addresses copied from the hub's pages are understood
 * @throws {DownloadError} `bad_reference`, with an example
 */
export function parseModelReference(text: string, hubOrigin: string): ModelReference {
  if (text.startsWith('hf:')) {
    const [repository = '', ...wanted] = text.slice('hf:'.length).split(':');
    return hubReference(repository, wanted.join(':') || undefined);
  }
  if (!URL.canParse(text) || !/^https?:/i.test(text)) throw badReference(`"${text}" names no model.`);
  const url = checkUrl(new URL(text));
  const [, repository, file] = (url.origin === hubOrigin ? HUB_PATH.exec(url.pathname) : null) ?? [];
  if (repository !== undefined) return hubReference(repository, file && decodePath(file));
  if (!url.pathname.endsWith('.gguf')) throw badReference('The URL leads to no *.gguf file.');
  return { kind: 'url', url };
}

function hubReference(repository: string, wanted: string | undefined): ModelReference {
  if (!REPOSITORY.test(repository) || repository.includes('..')) {
    throw badReference(`"${repository}" is no repository of the hub.`);
  }
  return { kind: 'hub', repository, ...(wanted === undefined ? {} : { wanted }) };
}

/** @throws {DownloadError} `bad_reference` for percent signs that mean nothing */
export function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw badReference('The URL holds a "%" that means nothing.');
  }
}

function badReference(what: string): DownloadError {
  return new DownloadError(
    'bad_reference',
    `${what} Say hf:org/repository, hf:org/repository:Q4_K_M, or the https URL of a .gguf file.`,
  );
}
