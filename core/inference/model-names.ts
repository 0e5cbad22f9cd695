/**
 * What clients may call a model: its id in any case, with or without Ollama's tag, or a name that the owner has
 * given it. Agents ask for `claude-…` and `gpt-…` whatever is installed.
 */
import { nearNames } from '../near-names.ts';

/**
 * Names, or patterns in which `*` is any text, with the id of the model that each stands for. `*` alone is every name
 * that nothing else fits.
 */
export type Aliases = Readonly<Record<string, string>>;

interface Named {
  readonly id: string;
}

/** The tag that every name of Ollama's has, said or not. */
const DEFAULT_TAG = ':latest';

/** A model by its own id: as it is written, else in any case, with `:latest` or without; none where two could be meant. */
export function findById<Model extends Named>(models: ReadonlyMap<string, Model>, id: string): Model | undefined {
  const exact = models.get(id) ?? models.get(otherTag(id));
  if (exact !== undefined) return exact;
  const wanted = withoutTag(id.toLowerCase());
  const [model, another] = [...models].filter(([name]) => withoutTag(name.toLowerCase()) === wanted);
  return another === undefined ? model?.[1] : undefined;
}

function otherTag(id: string): string {
  return id.endsWith(DEFAULT_TAG) ? withoutTag(id) : `${id}${DEFAULT_TAG}`;
}

function withoutTag(id: string): string {
  return id.endsWith(DEFAULT_TAG) ? id.slice(0, -DEFAULT_TAG.length) : id;
}

/**
 * The id that a name which no model has stands for; undefined if for none. Of two patterns the one with more letters
 * goes first.
 */
export function idFor(name: string, aliases: Aliases): string | undefined {
  const wanted = withoutTag(name.toLowerCase());
  const [alias] = Object.entries(aliases)
    .filter(([pattern]) => matches(wanted, withoutTag(pattern.toLowerCase())))
    .toSorted(([a], [b]) => weight(b) - weight(a));
  return alias?.[1];
}

function weight(pattern: string): number {
  return pattern.includes('*') ? pattern.replaceAll('*', '').length : Infinity;
}

/** In one pass over the name for each piece between two stars, whatever the pattern is. */
function matches(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = name.indexOf(piece, at);
    if (found === -1) return false;
    at = found + piece.length;
  }
  return at <= name.length - last.length;
}

/** Longer than any file name; an error is no place for whatever else was sent as an id. */
const MAX_QUOTED_NAME = 200;

/** What is wrong with a name, and what to do. @param meant the id that it is an alias of */
export function unknownModel(name: string, meant: string | undefined, models: Iterable<Named>): string {
  const ids = [...models].map(({ id }) => id);
  const quoted = name.slice(0, MAX_QUOTED_NAME);
  if (meant !== undefined) {
    return `The model '${quoted}' stands for '${meant}' here, which is not installed. "postern models alias" shows what names stand for.`;
  }
  const near = nearNames(name, ids.map(withoutTag)).map((id) => `'${id}'`);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
  // A name of letters that a shell would read is not put into a command.
  const command = /^[\w.:/@-]{1,64}$/.test(quoted)
    ? ` To let an installed model answer to this name: postern models alias ${quoted} ${ids[0] ?? 'MODEL'}.`
    : '';
  return `The model '${quoted}' is not installed.${hint} GET /v1/models lists those that are.${command}`;
}
