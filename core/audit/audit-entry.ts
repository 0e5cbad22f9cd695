/**
 * What the audit log can tell: a closed list of kinds, each with its fields and no others, as the rooms declare them.
 * There is no field for a secret or a prompt, and none of free length.
 */
import * as z from 'zod';

/** An id, an address, a reason: words of ours. */
const name = z.string().min(1).max(100);
/** What an owner or a device calls something. */
const label = z.string().max(400);
const count = z.int().min(0);

/** All that a field may hold. */
const FIELDS = {
  name,
  label,
  count,
  'label or null': label.nullable(),
  'count or null': count.nullable(),
  flag: z.boolean(),
} as const;

type AuditFields = Readonly<Record<string, keyof typeof FIELDS>>;

/** Kinds of entries, each with its fields in the order in which they are written. */
export type AuditEvents = Readonly<Record<string, AuditFields>>;

export type AuditEntryOf<Events extends AuditEvents> = {
  [Kind in keyof Events]: { readonly kind: Kind } & {
    readonly [Field in keyof Events[Kind]]: z.output<(typeof FIELDS)[Events[Kind][Field]]>;
  };
}[keyof Events];

/** Of any list. */
export interface AuditEntry {
  readonly kind: string;
  readonly [field: string]: string | number | boolean | null;
}

export interface AuditEntryCodec {
  /** @throws for an entry that is not in the list, or has other fields; that is a fault of ours */
  encode(entry: AuditEntry): string;
  /** `undefined` for text that `encode` does not write. */
  find(text: string): AuditEntry | undefined;
}

export function createAuditEntryCodec(events: AuditEvents): AuditEntryCodec {
  const schemas = new Map(Object.entries(events).map(([kind, fields]) => [kind, schemaOf(kind, fields)]));
  const parse = (entry: unknown): AuditEntry => {
    const { kind } = z.looseObject({ kind: z.string() }).parse(entry);
    const schema = schemas.get(kind);
    if (schema === undefined) throw new TypeError('nobody declares an audit entry of this kind');
    return schema.parse(entry);
  };
  return {
    encode: (entry) => JSON.stringify(parse(entry)),
    find(text) {
      try {
        return parse(JSON.parse(text));
      } catch {
        return undefined;
      }
    },
  };
}

function schemaOf(kind: string, fields: AuditFields) {
  const values = Object.entries(fields).map(([field, holds]) => [field, FIELDS[holds]] as const);
  return z.strictObject({ kind: z.literal(kind), ...Object.fromEntries(values) });
}
