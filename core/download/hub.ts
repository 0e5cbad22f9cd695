/**
 * The Hugging Face hub, or a mirror of it: what is in a repository, and where its files are.
 * https://huggingface.co/docs/hub/api
 */
import * as z from 'zod';
import { DownloadError } from './download-error.ts';
import type { HttpAnswer, HttpClient } from './http-client.ts';
import { refusal, type Subject } from './refusal.ts';
import { parseBoundedJson } from '../json/json-reader.ts';

export interface HubFile {
  /** Within the repository, as the hub says it: not to be used as a path before it was checked. */
  readonly path: string;
  readonly sizeBytes: number;
  /** 64 hexadecimal digits, of files in the large-file store. */
  readonly sha256?: string;
}

export interface Hub {
  /**
   * Everything in a repository.
   * @throws {DownloadError} `not_found`, `forbidden`, `bad_answer`, and what the client throws
   */
  list(repository: string, signal: AbortSignal): Promise<readonly HubFile[]>;
  fileUrl(repository: string, path: string): URL;
  /** For an error about a repository. */
  subject(repository: string): Subject;
}

interface HubOptions {
  /** `https://huggingface.co`; that of a mirror may have a path. */
  readonly endpoint: URL;
  readonly http: HttpClient;
  /** A token was given; it changes what a refusal means. */
  readonly hasToken: boolean;
}

const treeSchema = z.array(
  z.looseObject({
    type: z.string(),
    path: z.string(),
    size: z.int().nonnegative().default(0),
    lfs: z.looseObject({ oid: z.string().regex(/^[0-9a-f]{64}$/), size: z.int().nonnegative() }).optional(),
  }),
);

/** A page has a thousand files; the largest repositories some thousands. */
const MAX_PAGES = 50;
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

export function createHub({ endpoint, http, hasToken }: HubOptions): Hub {
  const base = endpoint.origin + endpoint.pathname.replace(/\/+$/, '');
  const subject = (repository: string): Subject => ({
    what: `hf:${repository}`,
    page: `${base}/${repository}`,
    hasToken,
  });

  return {
    subject,
    fileUrl: (repository, path) =>
      new URL(`${base}/${repository}/resolve/main/${path.split('/').map(encodeURIComponent).join('/')}`),
    async list(repository, signal) {
      const files: HubFile[] = [];
      let next: URL | undefined = new URL(`${base}/api/models/${repository}/tree/main?recursive=true`);
      for (let page = 0; next !== undefined && page < MAX_PAGES; page += 1) {
        const answer: HttpAnswer = await http.get(next, { signal, headers: { accept: 'application/json' } });
        if (answer.status !== 200) {
          await answer.discard();
          throw refusal(answer, subject(repository));
        }
        files.push(...parseTree(await readText(answer), endpoint));
        next = nextPage(answer, endpoint);
      }
      return files;
    },
  };
}

function parseTree(text: string, { host }: URL): HubFile[] {
  const tree = treeSchema.safeParse(tryJson(text));
  if (!tree.success) throw new DownloadError('bad_answer', `${host} does not answer as a hub does.`);
  return tree.data
    .filter(({ type }) => type === 'file')
    .map(({ path, size, lfs }) => ({
      path,
      sizeBytes: lfs?.size ?? size,
      ...(lfs === undefined ? {} : { sha256: lfs.oid }),
    }));
}

/** `Link: <…>; rel="next"`, followed on the hub itself only. */
function nextPage({ headers }: HttpAnswer, endpoint: URL): URL | undefined {
  const target = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  if (target === undefined || !URL.canParse(target, endpoint.href)) return undefined;
  const url = new URL(target, endpoint);
  return url.origin === endpoint.origin ? url : undefined;
}

async function readText({ body }: HttpAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_PAGE_BYTES) throw new DownloadError('bad_answer', 'The list of files is too long to be one.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function tryJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
