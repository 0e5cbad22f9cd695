/**
 * The owner's settings: one flat table of names, each with its schema, its default and what it means. A value comes
 * from a flag, else from the environment, else from `settings.json`, else from the default.
 *
 * The file is strict: an unknown name or a bad value stops the program and says which, since a setting that is
 * silently ignored (a misspelled `server.expose`) is worse than one that is refused. Secrets have no place in it.
 */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { isRecord } from '../json.ts';
import { writeFileAtomically } from './atomic-file.ts';
import { parseBoundedJson } from '../json/json-reader.ts';

const origin = z.string().refine((value) => value === '*' || (URL.canParse(value) && new URL(value).origin === value), {
  error: 'expected "*" or an origin such as "https://app.example"',
});
const secureOrigin = z
  .string()
  .refine((value) => value.startsWith('https://') && URL.canParse(value) && new URL(value).origin === value, {
    error: 'expected null or an origin such as "https://app.example"',
  });
const hostname = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/, 'expected a host name in lower case, without a port');

/** As a relay is known to those who sign for it: no path, and no port that goes without saying. */
const relayOrigin = z
  .string()
  .regex(
    /^wss?:\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?$/,
    'expected addresses such as "wss://relay.example.com" or "wss://relay.example.com:8443", in lower case, without a path',
  )
  .refine((value) => !/^wss:.*:443$|^ws:.*:80$/.test(value), 'leave out the port, which is the usual one');

/** A device tries them one after the other. */
const MAX_RELAYS = 4;

/** As BIP-32 counts them: 32 bits. */
const MAX_AGENT_INDEX = 0xffff_ffff;

interface Definition {
  /** The environment variable that goes before the file. */
  readonly environment?: string;
  readonly meaning: string;
}

const definitions = z.registry<Definition>();

/** A default for requests that do not say; null leaves it to the model's own file. */
function sampling(schema: z.ZodNumber, what: string) {
  return schema
    .nullable()
    .default(null)
    .register(definitions, { meaning: `${what} where a request says none; null: the model decides` });
}

const settingsSchema = z.strictObject({
  'server.port': z.int().min(0).max(65_535).default(1337).register(definitions, {
    environment: 'SVC_PORT',
    meaning: 'TCP port; 0 takes any free one',
  }),
  'server.expose': z.boolean().default(false).register(definitions, {
    meaning: 'listen on all interfaces, so that other machines on the network can connect',
  }),
  'server.hostnames': z.array(hostname).default([]).register(definitions, {
    meaning: 'further names under which this machine is reached',
  }),
  'server.allowedOrigins': z.array(origin).default(['*']).register(definitions, {
    meaning: 'web pages that may call: origins, or "*" for inference from any page',
  }),
  'models.folder': z.string().min(1).default(join(homedir(), 'MLXModels')).register(definitions, {
    environment: 'SVC_MODELS_DIR',
    meaning: 'where model files (*.gguf) are',
  }),
  'models.discover': z.boolean().default(true).register(definitions, {
    meaning: 'also use the models that LM Studio and Ollama have downloaded',
  }),
  'inference.threads': z.int().min(1).max(256).nullable().default(null).register(definitions, {
    meaning: 'CPU threads that generate; null takes all cores but one',
  }),
  'inference.contextTokens': z.int().min(256).max(1_048_576).default(8192).register(definitions, {
    meaning: 'the longest conversation, in tokens, that memory is kept for; a model, or the memory, may have less',
  }),
  'inference.keepLoadedMinutes': z.literal([0, 5, 15, 30, 60]).nullable().default(15).register(definitions, {
    meaning: 'how long a model stays loaded after use: 0, 5, 15, 30 or 60; null keeps it until another is asked for',
  }),
  'inference.evictionPolicy': z.enum(['strict', 'flexible']).default('strict').register(definitions, {
    meaning: 'strict: one model is loaded at a time; flexible: as many as fit in memory',
  }),
  'inference.concurrentSessions': z.int().nullable().default(null).register(definitions, {
    meaning: 'conversations of one model that stay in memory, 1 to 32; null: up to 4, as memory allows',
  }),
  'inference.continuousBatching': z.boolean().default(false).register(definitions, {
    meaning: 'generate for several requests of one model at once, not one after the other',
  }),
  'inference.gpu': z.enum(['auto', 'off']).default('auto').register(definitions, {
    meaning: 'use a supported graphics card where there is one',
  }),
  'channel.streamTickMs': z.int().min(0).max(200).default(40).register(definitions, {
    meaning: 'how long a sealed stream collects its output before it sends a record, so that token times do not show',
  }),
  'channel.crypto': z.enum(['node', 'noble']).default('node').register(definitions, {
    meaning: "what computes the sealed channel: this Node's OpenSSL, or the noble libraries, which are slower",
  }),
  'access.requireKeyOnLoopback': z.boolean().default(false).register(definitions, {
    meaning: 'programs on this machine need an access key, too',
  }),
  'access.requestsPerMinute': z.int().min(1).max(1_000_000).default(600).register(definitions, {
    meaning: 'requests that each access key may make in a minute',
  }),
  'access.requestsAtOnce': z.int().min(1).max(1000).default(16).register(definitions, {
    meaning: 'requests that each access key may have under way',
  }),
  'pairing.appOrigin': secureOrigin.nullable().default(null).register(definitions, {
    meaning: 'where the app for phones is served, for the link in an invite; null: no link',
  }),
  'pairing.discovery': z.boolean().default(true).register(definitions, {
    meaning: 'devices in the same network may ask to be paired by a code that is shown here',
  }),
  'pairing.advertise': z.boolean().default(true).register(definitions, {
    meaning: 'while the service is exposed, say so in the network (mDNS), so that devices find it',
  }),
  'pairing.defaultAgent': z.int().min(0).max(MAX_AGENT_INDEX).nullable().default(null).register(definitions, {
    meaning: 'the agent, by its number, that a device paired by a code is good for; null: every one',
  }),
  'relay.urls': z.array(relayOrigin).max(MAX_RELAYS).default([]).register(definitions, {
    environment: 'SVC_RELAY',
    meaning: 'relays through which paired devices, and nobody else, reach this machine from anywhere',
  }),
  'identity.store': z.enum(['auto', 'keyring', 'vault']).default('auto').register(definitions, {
    environment: 'SVC_IDENTITY_STORE',
    meaning:
      "where a new identity's secrets go: the system's credential store (keyring), a sealed file (vault), or auto",
  }),
  'sampling.temperature': sampling(z.number().min(0).max(2), 'temperature'),
  'sampling.topP': sampling(z.number().min(0).max(1), 'top-p'),
  'sampling.topK': sampling(z.int().min(0), 'top-k'),
  'sampling.minP': sampling(z.number().min(0).max(1), 'min-p'),
  'sampling.repetitionPenalty': sampling(z.number().positive().max(10), 'repetition penalty'),
  'sampling.maxTokens': sampling(z.int().min(1), 'most tokens of an answer'),
  'log.bodies': z.boolean().default(false).register(definitions, {
    meaning: 'keep the first 4096 characters of prompts and answers in the request log, without what looks secret',
  }),
  'log.days': z.int().min(1).max(90).default(7).register(definitions, {
    meaning: 'how many days the request log goes back',
  }),
});

export type Settings = Readonly<z.output<typeof settingsSchema>>;
export type SettingName = keyof Settings;
export type SettingSource = 'flag' | 'environment' | 'file' | 'default';

const SETTING_NAMES = Object.keys(settingsSchema.shape).filter(isSettingName);

export interface SettingRow {
  readonly name: SettingName;
  readonly value: unknown;
  readonly source: SettingSource;
  readonly meaning: string;
}

/** A setting that can't be used; the message says which, why, and where it came from. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
  /** It came from the command line. */
  readonly isMisuse: boolean;

  constructor(
    message: string,
    { cause, isMisuse = false }: { readonly cause?: unknown; readonly isMisuse?: boolean } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.isMisuse = isMisuse;
  }
}

interface Sources {
  readonly flags: Readonly<Partial<Record<SettingName, unknown>>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly file: Readonly<Record<string, unknown>>;
}

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(settingsSchema.shape, name);
}

export function settingsPath(home: string): string {
  return join(home, 'settings.json');
}

/** @throws {SettingsError} for a file that is not a JSON object of known settings */
export async function readSettingsFile(home: string): Promise<Readonly<Record<string, unknown>>> {
  const path = settingsPath(home);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isRecord(error) && error['code'] === 'ENOENT') return '{}';
    throw new SettingsError(`${path} cannot be read.`, { cause: error });
  });
  const json = parseJson(text, path);
  for (const [name, value] of Object.entries(json)) checkSetting(name, value, path);
  return json;
}

/** Replaces one setting in the file, or takes it out with `undefined`. @throws {SettingsError} and changes nothing */
export async function writeSetting(home: string, name: string, value: unknown): Promise<void> {
  const current = await readSettingsFile(home);
  if (value !== undefined) checkSetting(name, value);
  const { [name]: _, ...others } = current;
  const next = value === undefined ? others : { ...others, [name]: value };
  await writeFileAtomically(settingsPath(home), `${JSON.stringify(next, null, 2)}\n`, 0o600);
}

/** @throws {SettingsError} for a flag or variable that does not fit its schema */
export function resolveSettings(sources: Sources): {
  readonly settings: Settings;
  readonly rows: readonly SettingRow[];
} {
  const rows = SETTING_NAMES.map((name) => resolveSetting(name, sources));
  const settings = settingsSchema.parse(Object.fromEntries(rows.map(({ name, value }) => [name, value])));
  return { settings, rows };
}

const COMMAND_LINE = 'the command line';

function resolveSetting(name: SettingName, { flags, environment, file }: Sources): SettingRow {
  const { meaning, environment: variable } = definitionOf(name);
  if (flags[name] !== undefined) {
    return { name, value: checkSetting(name, flags[name], COMMAND_LINE), source: 'flag', meaning };
  }
  const text = variable === undefined ? undefined : environment[variable];
  if (text !== undefined && text !== '') {
    return {
      name,
      value: checkSetting(name, parseSettingText(name, text), `$${variable}`),
      source: 'environment',
      meaning,
    };
  }
  if (file[name] !== undefined) return { name, value: file[name], source: 'file', meaning };
  return { name, value: settingsSchema.shape[name].parse(undefined), source: 'default', meaning };
}

function definitionOf(name: SettingName): Definition {
  const definition = definitions.get(settingsSchema.shape[name]);
  if (definition === undefined) throw new TypeError(`the setting ${name} was never defined`);
  return definition;
}

/** A value as a person types it: JSON where that fits the setting, else the text itself, and a list by commas. */
export function parseSettingText(name: SettingName, text: string): unknown {
  const schema = settingsSchema.shape[name];
  const json = tryJson(text);
  const candidates = [...(json === undefined ? [] : [json]), text, text.split(',').map((item) => item.trim())];
  return candidates.find((candidate) => schema.safeParse(candidate).success) ?? json ?? text;
}

/** @param where the value stands, if not where the owner has just typed it */
function checkSetting(name: string, value: unknown, where?: string): unknown {
  const at = where === undefined ? '' : `${where}: `;
  if (!isSettingName(name)) {
    throw new SettingsError(`${at}there is no setting "${name}". "postern settings list" shows them all.`);
  }
  const schema = settingsSchema.shape[name];
  const result = schema.safeParse(value);
  if (result.success) return name === 'models.folder' && typeof value === 'string' ? resolve(value) : value;
  const reason = expectationOf(schema) ?? result.error.issues[0]?.message ?? 'not a valid value';
  throw new SettingsError(`${at}${name}: ${reason}`, { isMisuse: where === COMMAND_LINE });
}

/** In words, for a schema that few of them describe. */
function expectationOf(schema: z.ZodType): string | undefined {
  const { type, minimum, maximum } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  if (type === 'integer') return `expected a number from ${minimum} to ${maximum}`;
  return type === 'boolean' ? 'expected true or false' : undefined;
}

function parseJson(text: string, path: string): Record<string, unknown> {
  const json = tryJson(text);
  if (isRecord(json)) return json;
  throw new SettingsError(`${path} is not a JSON object. Mend it, or delete it to go back to the defaults.`);
}

function tryJson(text: string): unknown {
  try {
    return parseBoundedJson(text);
  } catch {
    return undefined;
  }
}
