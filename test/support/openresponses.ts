/** The published Open Responses schemas, as checks. */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';

const document = JSON.parse(
  readFileSync(new URL('../schemas/openresponses.openapi.json', import.meta.url), 'utf8'),
) as Document;

interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, EventSchema>> };
}
interface EventSchema {
  readonly properties?: { readonly type?: { readonly enum?: readonly string[] } };
}

// OpenAPI has keywords of its own (`discriminator`, `x-…`), which say nothing that the others do not.
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema(document, 'openresponses');

/** Every event of the standard by its `type`. */
const eventSchemas = new Map(
  Object.entries(document.components.schemas).flatMap(([name, schema]) =>
    name.endsWith('StreamingEvent') ? [[schema.properties?.type?.enum?.[0] ?? '', name] as const] : [],
  ),
);

function expectValid(name: string, value: unknown): void {
  const validate = ajv.getSchema(`openresponses#/components/schemas/${name}`);
  if (validate === undefined) throw new Error(`the published document has no schema ${name}`);
  const isValid = validate(value);
  expect(isValid, `${name}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`).toBe(true);
}

export function expectValidResponse(body: unknown): void {
  expectValid('ResponseResource', body);
}

export function expectValidCompaction(body: unknown): void {
  expectValid('CompactResource', body);
}

export function expectValidSocketError(event: unknown): void {
  expectValid('WebSocketErrorEvent', event);
}

export function expectValidEvent(event: { readonly type: string }): void {
  expectValid(eventSchemas.get(event.type) ?? `of an event ${event.type}`, event);
}

export function expectValidItem(item: unknown): void {
  expectValid('ItemField', item);
}

export interface StreamEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly response?: Response;
  readonly item?: Item;
  readonly output_index?: number;
  readonly item_id?: string;
  readonly delta?: string;
  readonly text?: string;
  readonly arguments?: string;
}

export interface Response {
  readonly id: string;
  readonly status: string;
  readonly output: readonly Item[];
  readonly usage: object | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly incomplete_details: { readonly reason: string } | null;
}

export interface Item {
  readonly type: string;
  readonly id: string;
  readonly status?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly call_id?: string;
  readonly arguments?: string;
  readonly content?: readonly { readonly type: string; readonly text: string }[];
  readonly summary?: readonly { readonly type: string; readonly text: string }[];
}

/** The events of a whole stream, each of them valid, numbered from 0 without a gap, and `[DONE]` last. */
export function validEvents(text: string): StreamEvent[] {
  const blocks = text.split('\n\n');
  expect(blocks.slice(-2)).toEqual(['data: [DONE]', '']);
  return blocks.slice(0, -2).map((block, index) => {
    const [, name = '', data = ''] = /^event: ([a-z_.]+)\ndata: ([^\n]+)$/.exec(block) ?? [];
    const event = JSON.parse(data) as StreamEvent;
    expect(event).toMatchObject({ type: name, sequence_number: index });
    expectValid(eventSchemas.get(name) ?? `of an event ${name}`, event);
    return event;
  });
}
