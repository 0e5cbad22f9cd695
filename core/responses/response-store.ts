/**
 * Answers that a client may come back to: to fetch one again, or to go on from it without sending the conversation a
 * second time. They survive a restart, and are gone after a day.
 *
 * Each response knows the one it goes on from, and only adds its own part, so a conversation is a chain. What a
 * response that can still be asked for rests on stays as long as that one, though it can no longer be asked for itself.
 * An owner sees nothing of another's, and can push out no response but their own. Of owners that are guests there may
 * be any number: they have room together, and where that is full nothing more of theirs is stored until some expires.
 */
import { migrate, type Database } from '../../storage/database.ts';

/** How long a response can be asked for. */
export const RESPONSE_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Of each owner; the oldest go first. A whole conversation must fit into memory, so all of them may. */
const DEFAULT_LIMITS: StoreLimits = { maxResponses: 2_000, maxBytes: 128 * 1024 * 1024 };

/**
 * Of a response with all that it goes on from. A conversation is read, parsed and sent to a model as a whole, each time
 * that it goes on; a million tokens have room in here.
 */
export const MAX_CONVERSATION_BYTES = 4 * 1024 * 1024;

/** Of each guest. */
const GUEST_LIMITS: StoreLimits = { maxResponses: 50, maxBytes: 8 * 1024 * 1024 };

/** Of all guests together. What they store is looked at before, so that the last one may go beyond it. */
const LIMITS_OF_ALL_GUESTS: StoreLimits = { maxResponses: 1_000, maxBytes: 64 * 1024 * 1024 };

export interface StoreLimits {
  readonly maxResponses: number;
  readonly maxBytes: number;
}

/** What a response is and holds is the business of whoever stores it: here it is JSON. */
export interface StoredResponse {
  readonly id: string;
  /** The response that this one goes on from. */
  readonly previousId: string | undefined;
  /** What the client added to the conversation. */
  readonly input: unknown;
  /** The answer as it was given. */
  readonly body: unknown;
  /** How it came, piece by piece, where that is to be told again. */
  readonly steps?: unknown;
  /** It is still being made, or was when the process that made it ended. */
  readonly isUnfinished?: boolean;
}

/** What an unfinished response becomes. */
export type ResponseEnd = Pick<StoredResponse, 'id' | 'body' | 'steps'>;

export interface ResponseStore {
  /** When this returns, the response survives the end of the process. */
  save(owner: string, response: StoredResponse): void;
  /** The same for a guest. @returns false where guests have no room: nothing is stored then */
  saveForGuest(owner: string, response: StoredResponse): boolean;
  /** The end of a response that was saved unfinished. One that is gone by now stays so. */
  finish(owner: string, end: ResponseEnd): void;
  hasRoomForGuests(): boolean;
  /** Whether so many bytes more can go on from this response, or begin a conversation. */
  hasRoomInConversation(owner: string, previousId: string | undefined, bytes: number): boolean;
  find(owner: string, id: string): StoredResponse | undefined;
  /** How long a response is as JSON; 0 where there is none. */
  bytesOf(owner: string, id: string): number;
  /** All that led to a response, itself included, oldest first; `undefined` when any of it is missing. */
  conversation(owner: string, id: string): readonly StoredResponse[] | undefined;
  /** @returns false when there was no such response */
  delete(owner: string, id: string): boolean;
}

interface StoreOptions {
  readonly database: Database;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly limits?: StoreLimits;
  readonly guestLimits?: { readonly each: StoreLimits; readonly all: StoreLimits };
}

const DEFAULT_GUEST_LIMITS = { each: GUEST_LIMITS, all: LIMITS_OF_ALL_GUESTS };

export function createResponseStore({
  database,
  now,
  limits = DEFAULT_LIMITS,
  guestLimits = DEFAULT_GUEST_LIMITS,
}: StoreOptions): ResponseStore {
  migrate(database, 'responses', MIGRATIONS);
  const statements = prepareStatements(database);
  statements.removeExpired.run(now());
  const save = database.transaction((owner: string, response: StoredResponse, isGuest: boolean) => {
    const at = now();
    statements.removeExpired.run(at);
    if (isGuest && !hasRoomForGuests()) return false;
    insert(statements, { owner, response, createdAtMs: at, isGuest });
    statements.removeExcess.run({ owner, ...(isGuest ? guestLimits.each : limits) });
    return true;
  });
  const hasRoomForGuests = (): boolean => {
    const { responses, bytes } = statements.heldByGuests.get(now()) ?? { responses: 0, bytes: 0 };
    return responses < guestLimits.all.maxResponses && bytes < guestLimits.all.maxBytes;
  };
  const remove = database.transaction((owner: string, id: string) => {
    if (statements.hide.run({ owner, id, now: now() }).changes === 0) return false;
    // Each round frees what only the last one's rested on.
    while (statements.removeUnneeded.run(owner).changes > 0);
    return true;
  });
  return {
    save: (owner, response) => void save.immediate(owner, response, false),
    saveForGuest: (owner, response) => save.immediate(owner, response, true),
    finish(owner, { id, body, steps }) {
      const text = JSON.stringify(body);
      const how = steps === undefined ? null : JSON.stringify(steps);
      statements.finish.run({ owner, id, body: text, steps: how, added: Buffer.byteLength(text) + (how?.length ?? 0) });
    },
    hasRoomForGuests,
    hasRoomInConversation(owner, id, bytes) {
      const held = id === undefined ? 0 : (statements.conversationBytes.get({ owner, id })?.bytes ?? 0);
      return held + bytes <= MAX_CONVERSATION_BYTES;
    },
    find(owner, id) {
      const row = statements.find.get({ owner, id, now: now() });
      return row && storedResponse(row);
    },
    bytesOf: (owner, id) => statements.bytesOf.get({ owner, id, now: now() })?.bytes ?? 0,
    conversation(owner, id) {
      const rows = statements.conversation.all({ owner, id, now: now() });
      const isWhole = rows.length > 0 && rows[0]?.previous_id === null;
      return isWhole ? rows.map(storedResponse) : undefined;
    },
    delete: (owner, id) => remove.immediate(owner, id),
  };
}

const MIGRATIONS = [
  // expires_at_ms: until when it can be asked for. kept_until_ms: until when another that can be rests on it.
  `CREATE TABLE responses (
     id TEXT PRIMARY KEY,
     owner TEXT NOT NULL,
     previous_id TEXT,
     input TEXT NOT NULL,
     body TEXT NOT NULL,
     bytes INTEGER NOT NULL,
     created_at_ms INTEGER NOT NULL,
     expires_at_ms INTEGER NOT NULL,
     kept_until_ms INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX responses_by_age ON responses (owner, created_at_ms, bytes);
   CREATE INDEX responses_by_previous ON responses (previous_id);
   CREATE INDEX responses_by_end ON responses (kept_until_ms);`,
  `ALTER TABLE responses ADD COLUMN is_guest INTEGER NOT NULL DEFAULT 0;
   CREATE INDEX responses_of_guests ON responses (kept_until_ms, bytes) WHERE is_guest = 1;`,
  `ALTER TABLE responses ADD COLUMN steps TEXT;
   ALTER TABLE responses ADD COLUMN is_unfinished INTEGER NOT NULL DEFAULT 0;`,
];

interface Row {
  readonly id: string;
  readonly previous_id: string | null;
  readonly input: string;
  readonly body: string;
  readonly steps: string | null;
  readonly is_unfinished: number;
}

interface ResponseQuery {
  readonly owner: string;
  readonly id: string;
  readonly now: number;
}

function prepareStatements(database: Database) {
  return {
    ...prepareWrites(database),
    /** What the new response rests on stays as long as it does. */
    keepChain: database.prepare<[{ readonly owner: string; readonly id: string; readonly endsAtMs: number }]>(
      `WITH RECURSIVE chain (id, previous_id) AS (
         SELECT id, previous_id FROM responses WHERE id = @id AND owner = @owner
         UNION
         SELECT r.id, r.previous_id FROM responses r JOIN chain ON r.id = chain.previous_id WHERE r.owner = @owner
       )
       UPDATE responses SET kept_until_ms = max(kept_until_ms, @endsAtMs) WHERE id IN (SELECT id FROM chain)`,
    ),
    find: database.prepare<[ResponseQuery], Row>(
      `SELECT id, previous_id, input, body, steps, is_unfinished FROM responses WHERE id = @id AND owner = @owner AND expires_at_ms > @now`,
    ),
    bytesOf: database.prepare<[ResponseQuery], { readonly bytes: number }>(
      'SELECT bytes FROM responses WHERE id = @id AND owner = @owner AND expires_at_ms > @now',
    ),
    conversation: database.prepare<[ResponseQuery], Row>(
      `WITH RECURSIVE chain (id, previous_id, depth) AS (
         SELECT id, previous_id, 0 FROM responses WHERE id = @id AND owner = @owner AND expires_at_ms > @now
         UNION
         SELECT r.id, r.previous_id, depth + 1 FROM responses r JOIN chain ON r.id = chain.previous_id
         WHERE r.owner = @owner
       )
       SELECT r.id, r.previous_id, r.input, r.body, r.steps, r.is_unfinished FROM responses r JOIN chain ON r.id = chain.id ORDER BY depth DESC`,
    ),
    conversationBytes: database.prepare<[Pick<ResponseQuery, 'owner' | 'id'>], { readonly bytes: number }>(
      `WITH RECURSIVE chain (id, previous_id) AS (
         SELECT id, previous_id FROM responses WHERE id = @id AND owner = @owner
         UNION
         SELECT r.id, r.previous_id FROM responses r JOIN chain ON r.id = chain.previous_id WHERE r.owner = @owner
       )
       SELECT coalesce(sum(r.bytes), 0) AS bytes FROM responses r JOIN chain ON r.id = chain.id`,
    ),
    hide: database.prepare<[ResponseQuery]>(
      'UPDATE responses SET expires_at_ms = 0 WHERE id = @id AND owner = @owner AND expires_at_ms > @now',
    ),
    removeUnneeded: database.prepare<[string]>(
      `DELETE FROM responses WHERE owner = ? AND expires_at_ms = 0
       AND NOT EXISTS (SELECT 1 FROM responses next WHERE next.previous_id = responses.id)`,
    ),
    heldByGuests: database.prepare<[number], { readonly responses: number; readonly bytes: number }>(
      `SELECT count(*) AS responses, coalesce(sum(bytes), 0) AS bytes FROM responses
       WHERE is_guest = 1 AND kept_until_ms > ?`,
    ),
    removeExpired: database.prepare<[number]>('DELETE FROM responses WHERE kept_until_ms <= ?'),
    /** The newest always stays. */
    removeExcess: database.prepare<[{ readonly owner: string } & StoreLimits]>(
      `DELETE FROM responses WHERE id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER newest AS place, sum(bytes) OVER newest AS total
           FROM responses WHERE owner = @owner
           WINDOW newest AS (ORDER BY created_at_ms DESC, rowid DESC ROWS UNBOUNDED PRECEDING)
         ) WHERE place > 1 AND (place > @maxResponses OR total > @maxBytes)
       )`,
    ),
  };
}

function prepareWrites(database: Database) {
  return {
    insert: database.prepare<[Readonly<Record<string, string | number | null>>]>(
      `INSERT INTO responses
         VALUES (@id, @owner, @previousId, @input, @body, @bytes, @createdAtMs, @endsAtMs, @endsAtMs, @isGuest, @steps, @isUnfinished)`,
    ),
    finish: database.prepare<
      [Readonly<Record<'owner' | 'id' | 'body' | 'added', string | number> & { steps: string | null }>]
    >(
      `UPDATE responses SET body = @body, steps = @steps, is_unfinished = 0, bytes = bytes + @added
       WHERE id = @id AND owner = @owner`,
    ),
  };
}

interface NewResponse {
  readonly owner: string;
  readonly response: StoredResponse;
  readonly createdAtMs: number;
  readonly isGuest: boolean;
}

function insert(
  statements: ReturnType<typeof prepareStatements>,
  { owner, response, createdAtMs, isGuest }: NewResponse,
): void {
  const input = JSON.stringify(response.input);
  const body = JSON.stringify(response.body);
  const steps = response.steps === undefined ? null : JSON.stringify(response.steps);
  const endsAtMs = createdAtMs + RESPONSE_LIFETIME_MS;
  statements.insert.run({
    id: response.id,
    owner,
    previousId: response.previousId ?? null,
    input,
    body,
    bytes: Buffer.byteLength(input) + Buffer.byteLength(body) + (steps?.length ?? 0),
    createdAtMs,
    endsAtMs,
    isGuest: isGuest ? 1 : 0,
    steps,
    isUnfinished: response.isUnfinished === true ? 1 : 0,
  });
  if (response.previousId !== undefined) statements.keepChain.run({ owner, id: response.previousId, endsAtMs });
}

function storedResponse(row: Row): StoredResponse {
  return {
    id: row.id,
    previousId: row.previous_id ?? undefined,
    input: JSON.parse(row.input),
    body: JSON.parse(row.body),
    ...(row.steps === null ? {} : { steps: JSON.parse(row.steps) }),
    ...(row.is_unfinished === 0 ? {} : { isUnfinished: true }),
  };
}
