/** Reads a model's header from where the model lies, a few megabytes of it, so that nobody fetches what won't run. */
import { gguf } from '@huggingface/gguf';
import { memoryFacts, type MemoryFacts } from '../inference/local/memory-facts.ts';
import { DownloadError } from './download-error.ts';
import type { HttpClient } from './http-client.ts';
import type { PullPlan } from './pull-plan.ts';
import { refusal, type Subject } from './refusal.ts';

interface HeaderOptions {
  readonly http: HttpClient;
  readonly signal: AbortSignal;
}

/** @throws {DownloadError} `wrong_content` for what is no readable GGUF, and what the client throws */
export async function readRemoteFacts({ files, totalBytes }: PullPlan, options: HeaderOptions): Promise<MemoryFacts> {
  const [{ url, sizeBytes, subject }] = files;
  const header = await gguf(url.href, { fetch: rangeFetch(subject, options) }).catch((error: unknown) => {
    if (error instanceof DownloadError) throw error;
    throw new DownloadError('wrong_content', 'The file is no GGUF model that can be read.', { cause: error });
  });
  if (header.tensorInfoByteRange[1] > sizeBytes) {
    throw new DownloadError('wrong_content', 'The file is no whole GGUF model: its header is cut off.');
  }
  return memoryFacts({ ...header.metadata }, totalBytes);
}

/** `fetch` as the parser uses it, for one range at a time, however much a server would send. */
function rangeFetch(subject: Subject, { http, signal }: HeaderOptions): typeof fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = Object.fromEntries(new Headers(init?.headers));
    const wanted = /^bytes=(\d+)-(\d+)$/.exec(headers['range'] ?? '');
    const answer = await http.get(url, { signal, headers });
    const first = Number(wanted?.[1]);
    const isWhole = answer.status === 200 && first === 0;
    // The parser asks beyond the end of a small file; past it, as in a local file, there is nothing.
    if (answer.status !== 206 && !isWhole) {
      await answer.discard();
      if (answer.status === 416) return new Response(null);
      throw refusal(answer, subject);
    }
    const bytes = await take(answer.body, Number(wanted?.[2]) - first + 1);
    return new Response(bytes, { headers: { 'content-range': answer.headers.get('content-range') ?? '' } });
  };
}

/** Leaving the loop cancels the rest. */
async function take(body: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= most) break;
  }
  return Buffer.concat(chunks).subarray(0, most);
}
