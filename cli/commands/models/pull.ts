/** `postern models pull`: finds out what is meant, whether it will run and has room, and fetches it. */
import { dirname } from 'node:path';
import { missingBytes } from '../../../core/download/disk-space.ts';
import { DownloadError } from '../../../core/download/download-error.ts';
import { removeEmptyFolders } from '../../../core/download/empty-folders.ts';
import { fetchPlan } from '../../../core/download/fetch-plan.ts';
import { hubAccess, type HubAccess } from '../../../core/download/hub-environment.ts';
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
import type { LiveServer } from '../../live-server.ts';
import { startProgress } from '../../progress.ts';
import { fitWords } from './fit-words.ts';
import { findPullingServer, pullThrough } from './live-pull.ts';
import { onlyArgument, withModels, type OpenModels } from './open-models.ts';

export async function pullModel({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const what = onlyArgument(positionals, 'pull which model? For example hf:Qwen/Qwen3-8B-GGUF.');
  const sha256 = parseSha256(flags['sha256']);
  return withModels(context, async (models) => {
    const folder = models.settings['models.folder'];
    const explainPlain = (error: unknown): never => {
      throw explain(error, folder);
    };
    const pull = await startPull(models, context).catch(explainPlain);
    const plan = await makePlan({ what, sha256 }, pull).catch(explainPlain);
    if (!(await confirmFit(plan, flags['yes'] === true, pull))) {
      context.terminal.say('Nothing was fetched.');
      return 1;
    }
    const isNew = await fetchHereOrThere({ what, sha256 }, plan, pull).catch(async (error: unknown) => {
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

interface Pull extends HubAccess {
  readonly models: OpenModels;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  /** The service that is to fetch it, where one runs that fetches from and to where this command would. */
  readonly server: LiveServer | undefined;
}

/** @throws {DownloadError} `bad_environment` */
async function startPull(models: OpenModels, { home, environment, terminal, stop }: CommandContext): Promise<Pull> {
  const access = hubAccess(environment);
  const server = await findPullingServer(home, { access, folder: models.settings['models.folder'] });
  return { ...access, models, terminal, signal: stop, server };
}

interface Wanted {
  readonly what: string;
  readonly sha256: string | undefined;
}

interface PlannedPull extends PullPlan {
  readonly fit: MemoryFit;
}

async function makePlan(
  { what, sha256 }: Wanted,
  { models: { settings }, http, hub, endpoint, signal }: Pull,
): Promise<PlannedPull> {
  const reference = parseModelReference(what, endpoint.origin);
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
async function fetchHereOrThere({ what, sha256 }: Wanted, plan: PullPlan, pull: Pull): Promise<boolean> {
  const missing = await missingBytes(plan.files);
  const { server, terminal, signal } = pull;
  const doneBytes = plan.totalBytes - missing;
  if (doneBytes > 0 && missing > 0) terminal.say(`${formatBytes(doneBytes)} of it are there already.`);
  const progress = startProgress({ terminal, totalBytes: plan.totalBytes, doneBytes, now: () => performance.now() });
  const onProgress = (bytes: number): void => progress.update(bytes);
  try {
    if (server === undefined) return await fetchHere(plan, pull, onProgress);
    return await pullThrough(server, { model: what, sha256, signal, onProgress });
  } finally {
    progress.end();
  }
}

async function fetchHere(plan: PullPlan, pull: Pull, onProgress: (bytes: number) => void): Promise<boolean> {
  const { models, http, signal } = pull;
  const modelsDir = models.settings['models.folder'];
  const progress = (_file: unknown, { allBytes }: { readonly allBytes: number }): void => onProgress(allBytes);
  try {
    return (await fetchPlan(plan, { http, modelsDir, signal, onProgress: progress })) === 'fetched';
  } catch (error) {
    await removeEmptyFolders(dirname(plan.files[0].path), modelsDir);
    throw error;
  }
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
