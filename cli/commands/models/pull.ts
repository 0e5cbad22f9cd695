/** `postern models pull`: finds out what is meant, whether it will run and has room, and fetches it. */
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkDiskSpace, freeDiskBytes, missingBytes } from '../../../core/download/disk-space.ts';
import { DownloadError } from '../../../core/download/download-error.ts';
import { fetchFile } from '../../../core/download/fetch-file.ts';
import { createHttpClient, type HttpClient } from '../../../core/download/http-client.ts';
import { createHub, type Hub } from '../../../core/download/hub.ts';
import type { ModelCandidate } from '../../../core/download/model-choice.ts';
import { parseModelReference } from '../../../core/download/model-reference.ts';
import { planPull, UnclearChoiceError, type PullPlan } from '../../../core/download/pull-plan.ts';
import { readRemoteFacts } from '../../../core/download/remote-header.ts';
import { judgeFit, type MemoryFit } from '../../../core/inference/local/memory-fit.ts';
import { availableMemoryBytes } from '../../../core/system-memory.ts';
import {
  CommandError,
  UsageError,
  type CommandContext,
  type CommandInput,
  type ExitCode,
  type Terminal,
} from '../../command.ts';
import { confirm } from '../../confirm.ts';
import { explainDiskError } from '../../disk-error.ts';
import { formatBytes } from '../../format-bytes.ts';
import { startProgress } from '../../progress.ts';
import { fitWords } from './fit-words.ts';
import { removeEmptyFolders } from './empty-folders.ts';
import { hubEndpoint, hubToken } from './hub-environment.ts';
import { onlyArgument, withModels, type OpenModels } from './open-models.ts';

export async function pullModel({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const what = onlyArgument(positionals, 'pull which model? For example hf:Qwen/Qwen3-8B-GGUF.');
  const sha256 = parseSha256(flags['sha256']);
  return withModels(context, async (models) => {
    const folder = models.settings['models.folder'];
    const pull = startPull(models, context);
    const plan = await makePlan({ what, sha256 }, pull).catch((error: unknown) => {
      throw explain(error, folder);
    });
    if (!(await confirmFit(plan, flags['yes'] === true, pull))) {
      context.terminal.say('Nothing was fetched.');
      return 1;
    }
    const isNew = await fetchAll(plan, pull).catch(async (error: unknown) => {
      await removeEmptyFolders(dirname(plan.files[0].path), folder);
      throw explain(error, folder, await keptWords(plan));
    });
    await report(plan, isNew, pull);
    return 0;
  });
}

/** @throws {UsageError} */
function parseSha256(flag: CommandInput['flags'][string]): string | undefined {
  if (flag === undefined) return undefined;
  const digits = typeof flag === 'string' ? flag.toLowerCase().replace(/^sha256:/, '') : '';
  if (/^[0-9a-f]{64}$/.test(digits)) return digits;
  throw new UsageError('--sha256: expected 64 hexadecimal digits.');
}

interface Pull {
  readonly models: OpenModels;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  readonly http: HttpClient;
  readonly hub: Hub;
  readonly hubOrigin: string;
}

function startPull(models: OpenModels, { environment, terminal, stop }: CommandContext): Pull {
  const endpoint = hubEndpoint(environment);
  const token = hubToken(environment);
  const http = createHttpClient({ token: token === undefined ? undefined : { origin: endpoint.origin, value: token } });
  const hub = createHub({ endpoint, http, hasToken: token !== undefined });
  return { models, terminal, signal: stop, http, hub, hubOrigin: endpoint.origin };
}

interface PlannedPull extends PullPlan {
  readonly fit: MemoryFit;
}

async function makePlan(
  { what, sha256 }: { readonly what: string; readonly sha256: string | undefined },
  { models: { settings }, http, hub, hubOrigin, signal }: Pull,
): Promise<PlannedPull> {
  const reference = parseModelReference(what, hubOrigin);
  const plan = await planPull(reference, { http, hub, modelsDir: settings['models.folder'], sha256, signal });
  const facts = await readRemoteFacts(plan, { http, signal });
  const contextTokens = settings['inference.contextTokens'] ?? undefined;
  return { ...plan, fit: judgeFit(facts, contextTokens, await availableMemoryBytes()) };
}

/** A model that will not run is fetched only for those who say so; it may be meant for another machine. */
async function confirmFit({ files, totalBytes, fit }: PlannedPull, isSure: boolean, { terminal }: Pull): Promise<boolean> {
  terminal.say(`${formatBytes(totalBytes)} to ${files[0].path}`);
  terminal.say(`In memory: ${fitWords(fit)}.`);
  if (fit.verdict !== 'does not fit') return true;
  const question = 'It does not fit into the memory of this machine. Fetch it all the same?';
  return confirm({ question, isSure }, terminal);
}

/** @returns false when all of it was there already */
async function fetchAll({ files, totalBytes }: PullPlan, { models, terminal, http, signal }: Pull): Promise<boolean> {
  const missing = await missingBytes(files);
  checkDiskSpace(missing, await freeDiskBytes(models.settings['models.folder']));
  const doneBytes = totalBytes - missing;
  if (doneBytes > 0 && missing > 0) terminal.say(`${formatBytes(doneBytes)} of it are there already.`);
  const progress = startProgress({ terminal, totalBytes, doneBytes, now: () => performance.now() });
  let [earlierBytes, isNew] = [0, false];
  try {
    for (const file of files) {
      const onProgress = (bytes: number): void => progress.update(earlierBytes + bytes);
      const outcome = await fetchFile(file, { http, signal, onProgress, sleep: sleepUnless });
      isNew ||= outcome === 'fetched';
      earlierBytes += file.sizeBytes;
    }
  } finally {
    progress.end();
  }
  return isNew;
}

function sleepUnless(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}

async function report({ files }: PullPlan, isNew: boolean, { models, terminal }: Pull): Promise<void> {
  const [{ path, sha256 }] = files;
  const installed = (await models.catalog.list()).find((model) => model.path === path);
  if (installed === undefined) {
    throw new CommandError(`${path} is there, but another model has its name: rename the file.`);
  }
  const checked = sha256 === undefined ? 'its size was checked, no SHA-256 was known' : 'its SHA-256 was checked';
  terminal.say(isNew ? `Fetched; ${checked}. The model is called:` : 'It was there already. The model is called:');
  terminal.print(installed.id);
}

async function keptWords({ files, totalBytes }: PullPlan): Promise<string> {
  const keptBytes = totalBytes - (await missingBytes(files));
  if (keptBytes === 0) return '';
  return ` ${formatBytes(keptBytes)} of ${formatBytes(totalBytes)} are kept: the same command goes on from there.`;
}

/**
 * As the user should read it; what is no failure of a download is passed on.
 * @param folder the models folder
 * @param kept what can be gone on with
 */
function explain(error: unknown, folder: string, kept = ''): unknown {
  if (error instanceof UnclearChoiceError) return new CommandError(choiceWords(error));
  if (!(error instanceof DownloadError)) return explainDiskError(error, folder);
  if (error.code === 'bad_reference') return new UsageError(error.message);
  const otherWay = error.code === 'unreachable' ? ` A file that was fetched elsewhere can go into ${folder}.` : '';
  const isOurs = error.code !== 'busy' && error.code !== 'occupied';
  return new CommandError(error.message + (isOurs ? kept : '') + otherWay);
}

function choiceWords({ kind, repository, candidates }: UnclearChoiceError): string {
  const head =
    kind === 'absent' ? `hf:${repository} has no such model. It has:` : `hf:${repository} has several. Say which:`;
  const width = Math.max(...candidates.map(({ name }) => name.length));
  const line = (one: ModelCandidate): string =>
    `  ${formatBytes(one.sizeBytes).padStart(8)}  ${one.name.padEnd(width)}  hf:${repository}:${shortest(one, candidates)}`;
  return [head, ...candidates.map(line)].join('\n');
}

/** Its quantization where no other has the same. */
function shortest(one: ModelCandidate, all: readonly ModelCandidate[]): string {
  const isOnly = all.filter(({ quantization }) => quantization === one.quantization).length === 1;
  return one.quantization !== undefined && isOnly ? one.quantization : one.name;
}
