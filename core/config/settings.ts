/**
 * The owner's settings: one flat table of names, each with its schema, its default and what it means, as the rooms
 * declare them. A value comes from a flag, else from the environment, else from `settings.json`, else from the default.
 *
 * The file is strict: an unknown name or a bad value stops the program and says which, since a setting that is
 * silently ignored (a misspelled `server.expose`) is worse than one that is refused. Secrets have no place in it.
 */
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import * as z from 'zod';
import { isRecord } from '../json.ts';
import { parseBoundedJson } from '../json/json-reader.ts';
import { writeFileAtomically } from './atomic-file.ts';
import type { SettingDeclaration, SettingDeclarations, SettingsOf } from './setting.ts';

export type SettingSource = 'flag' | 'environment' | 'file' | 'default';

export interface SettingRow<Name extends string = string> {
  readonly name: Name;
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

export interface SettingSources<Name extends string = string> {
  readonly flags: Readonly<Partial<Record<Name, unknown>>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly file: Readonly<Record<string, unknown>>;
}

/** The settings that were declared, and no others. */
export interface SettingsTable<
  Declarations extends SettingDeclarations,
  Name extends string = keyof Declarations & string,
> {
  readonly isName: (name: string) => name is Name;
  /** A running service follows it; see `SettingDeclaration`. */
  readonly isLive: (name: Name) => boolean;
  /** A value as a person types it: JSON where that fits the setting, else the text itself, and a list by commas. */
  readonly parseText: (name: Name, text: string) => unknown;
  /** @throws {SettingsError} for a file that is not a JSON object of known settings */
  readonly readFile: (home: string) => Promise<Readonly<Record<string, unknown>>>;
  /** Replaces one setting in the file, or takes it out with `undefined`. @throws {SettingsError} and changes nothing */
  readonly write: (home: string, name: string, value: unknown) => Promise<void>;
  /**
   * The rows are in the order of the declarations.
   * @throws {SettingsError} for a flag or variable that does not fit its schema
   */
  readonly resolve: (sources: SettingSources<Name>) => ResolvedSettings<Declarations>;
}

export interface ResolvedSettings<Declarations extends SettingDeclarations> {
  readonly settings: SettingsOf<Declarations>;
  readonly rows: readonly SettingRow<keyof Declarations & string>[];
}

export function createSettingsTable<Declarations extends SettingDeclarations>(
  declarations: Declarations,
): SettingsTable<Declarations>;
export function createSettingsTable(declarations: SettingDeclarations): SettingsTable<SettingDeclarations> {
  const find = (name: string): SettingDeclaration | undefined =>
    Object.hasOwn(declarations, name) ? declarations[name] : undefined;
  const check = (name: string, value: unknown, where?: string): unknown =>
    checkSetting({ name, value, where }, find(name));
  const read = async (home: string): Promise<Record<string, unknown>> => {
    const json = await readJsonFile(settingsPath(home));
    for (const [name, value] of Object.entries(json)) check(name, value, settingsPath(home));
    return json;
  };
  return {
    isName: (name): name is string => find(name) !== undefined,
    isLive: (name) => find(name)?.isLive === true,
    parseText: (name, text) => parseSettingText(text, find(name)?.schema),
    readFile: read,
    write: async (home, name, value) => {
      const current = await read(home);
      if (value !== undefined) check(name, value);
      const { [name]: _, ...others } = current;
      const next = value === undefined ? others : { ...others, [name]: value };
      await writeFileAtomically(settingsPath(home), `${JSON.stringify(next, null, 2)}\n`, 0o600);
    },
    resolve: (sources) => {
      const rows = Object.entries(declarations).map(([name, one]) => resolveSetting({ name, ...one }, sources));
      const settings = rows.map(({ name, value }) => [name, declarations[name]?.schema.parse(value)]);
      return { settings: Object.fromEntries(settings), rows };
    },
  };
}

export function settingsPath(home: string): string {
  return join(home, 'settings.json');
}

const COMMAND_LINE = 'the command line';

interface NamedDeclaration extends SettingDeclaration {
  readonly name: string;
}

function resolveSetting(declaration: NamedDeclaration, { flags, environment, file }: SettingSources): SettingRow {
  const { name, schema, meaning, environment: variable } = declaration;
  if (flags[name] !== undefined) {
    const value = checkSetting({ name, value: flags[name], where: COMMAND_LINE }, declaration);
    return { name, value, source: 'flag', meaning };
  }
  const text = variable === undefined ? undefined : environment[variable];
  if (text !== undefined && text !== '') {
    const value = checkSetting({ name, value: parseSettingText(text, schema), where: `$${variable}` }, declaration);
    return { name, value, source: 'environment', meaning };
  }
  if (file[name] !== undefined) return { name, value: file[name], source: 'file', meaning };
  return { name, value: schema.parse(undefined), source: 'default', meaning };
}

function parseSettingText(text: string, schema: z.ZodType | undefined): unknown {
  const json = tryJson(text);
  const candidates = [...(json === undefined ? [] : [json]), text, text.split(',').map((item) => item.trim())];
  return candidates.find((candidate) => schema?.safeParse(candidate).success) ?? json ?? text;
}

interface GivenSetting {
  readonly name: string;
  readonly value: unknown;
  /** Undefined where the owner has just typed it. */
  readonly where: string | undefined;
}

function checkSetting({ name, value, where }: GivenSetting, declaration: SettingDeclaration | undefined): unknown {
  const at = where === undefined ? '' : `${where}: `;
  if (declaration === undefined) {
    throw new SettingsError(`${at}there is no setting "${name}". "postern settings list" shows them all.`);
  }
  const { schema, isPath } = declaration;
  const result = schema.safeParse(value);
  if (result.success) return isPath === true && typeof value === 'string' ? resolve(value) : value;
  const reason = expectationOf(schema) ?? result.error.issues[0]?.message ?? 'not a valid value';
  throw new SettingsError(`${at}${name}: ${reason}`, { isMisuse: where === COMMAND_LINE });
}

const oneOf = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** In words, for a schema that few of them describe. */
function expectationOf(schema: z.ZodType): string | undefined {
  const { anyOf, ...single } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const words = (anyOf ?? [single]).map(valuesOf);
  return words.includes(undefined) ? undefined : `expected ${oneOf.format(words.flatMap((one) => one ?? []))}`;
}

type JsonSchema = Pick<z.core.JSONSchema.BaseSchema, 'type' | 'minimum' | 'maximum' | 'enum'>;

function valuesOf({ type, minimum, maximum, enum: values }: JsonSchema): readonly string[] | undefined {
  if (values !== undefined) return values.map(String);
  if (type === 'integer')
    return [minimum === Number.MIN_SAFE_INTEGER ? 'a whole number' : `a number from ${minimum} to ${maximum}`];
  if (type === 'boolean') return ['true', 'false'];
  return type === 'null' ? ['null'] : undefined;
}

async function readJsonFile(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (isRecord(error) && error['code'] === 'ENOENT') return '{}';
    throw new SettingsError(`${path} cannot be read.`, { cause: error });
  });
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
