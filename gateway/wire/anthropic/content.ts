/**
 * Anthropic messages, the content blocks that anybody may write: text, pictures and documents into parts of the model
 * port. Pure.
 *
 * Blocks of a type that we have no use for are skipped, so that a conversation that another server took part in can go
 * on here; which types those were is noted. Fields without a meaning here (`cache_control`, `citations`) are let be.
 */
import * as z from 'zod';
import { mapped, type Steps } from '../../../core/steps.ts';
import { base64Part, mediaPart, MAX_URL_LENGTH, type MediaPart } from '../media-part.ts';

const textBlockSchema = z.object({ type: z.literal('text'), text: z.string() });

const base64SourceSchema = z.object({
  type: z.literal('base64'),
  media_type: z.string().min(1),
  data: z.string(),
});
/** To parse an address may take half a millisecond, so that is a step of its own, later. */
const urlSourceSchema = z.object({
  type: z.literal('url'),
  url: z
    .string()
    .max(MAX_URL_LENGTH)
    .regex(/^[a-z][\w+.-]*:/i, 'expected a URL'),
});

const imageBlockSchema = z.object({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [base64SourceSchema, urlSourceSchema], {
    error: 'expected a source of the type "base64" or "url"; there is no file storage here',
  }),
});

const documentBlockSchema = z.object({
  type: z.literal('document'),
  title: z.string().nullish(),
  context: z.string().nullish(),
  source: z.discriminatedUnion(
    'type',
    [
      base64SourceSchema,
      urlSourceSchema,
      z.object({ type: z.literal('text'), data: z.string() }),
      z.object({
        type: z.literal('content'),
        content: z.union([z.string(), z.array(z.discriminatedUnion('type', [textBlockSchema, imageBlockSchema]))]),
      }),
    ],
    { error: 'expected a source of the type "base64", "url", "text" or "content"; there is no file storage here' },
  ),
});

const searchResultBlockSchema = z.object({
  type: z.literal('search_result'),
  title: z.string(),
  source: z.string(),
  content: z.array(textBlockSchema),
});

/** What people and tools can say. */
export const contentBlockSchemas = [
  textBlockSchema,
  imageBlockSchema,
  documentBlockSchema,
  searchResultBlockSchema,
] as const;
type ContentBlock = z.output<(typeof contentBlockSchemas)[number]>;

/** What a system prompt consists of. */
export const systemBlockSchemas = [textBlockSchema] as const;

const KNOWN_TYPES: ReadonlySet<string> = new Set([
  'text',
  'image',
  'document',
  'search_result',
  'thinking',
  'tool_use',
  'tool_result',
]);

/**
 * A known block that is malformed, or stands where it can't, is not let through as an unknown one. That check aborts,
 * so that the union's complaint is the known block's.
 */
const unknownBlockSchema = z.looseObject({
  type: z.string().refine((type) => !KNOWN_TYPES.has(type), { abort: true }),
});
type UnknownBlock = z.output<typeof unknownBlockSchema>;

type BlockSchema = z.ZodObject<{ type: z.ZodLiteral<string> }>;

/** A string, or blocks of the given types among others that are not known. */
export function contentSchema<Schemas extends readonly [BlockSchema, ...BlockSchema[]]>(blockSchemas: Schemas) {
  const known = z.discriminatedUnion('type', blockSchemas, {
    error: 'a block of this type cannot stand here',
  });
  return z.union([z.string(), z.array(z.union([known, unknownBlockSchema]))], {
    error: 'expected a string or an array of content blocks',
  });
}

/** Notes a part of the request that will have no effect. */
export type Ignore = (name: string) => void;

/** Whether we know this block; notes it where we do not. */
export function isKnownBlock<Block extends { readonly type: string }>(
  block: Block | UnknownBlock,
  ignore: Ignore,
): block is Block {
  if (KNOWN_TYPES.has(block.type)) return true;
  ignore(`content.${block.type}`);
  return false;
}

interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export type ContentPart = TextPart | MediaPart;

/** Most blocks are one part of the prompt; a document may have several. */
export function* contentParts(block: ContentBlock): Steps<ContentPart[]> {
  switch (block.type) {
    case 'text':
      return [textPart(block.text)];
    case 'image':
      return [sourcePart(block.source, 'image/*')];
    case 'search_result':
      return [block.title, block.source, ...block.content.map(({ text }) => text)].map(paragraph);
    case 'document':
      return yield* documentParts(block);
  }
}

function* documentParts({ title, context, source }: z.output<typeof documentBlockSchema>): Steps<ContentPart[]> {
  const heading = [title, context].filter((text) => typeof text === 'string').map(paragraph);
  switch (source.type) {
    case 'text':
      return [...heading, paragraph(source.data)];
    case 'content': {
      const blocks = typeof source.content === 'string' ? [textPart(source.content)] : source.content;
      const parts = yield* mapped(blocks, (block) =>
        block.type === 'text' ? paragraph(block.text) : sourcePart(block.source, 'image/*'),
      );
      return [...heading, ...parts];
    }
    default:
      return [...heading, sourcePart(source, 'application/pdf')];
  }
}

type MediaSource = z.output<typeof base64SourceSchema> | z.output<typeof urlSourceSchema>;

function sourcePart(source: MediaSource, fallbackType: string): MediaPart {
  return source.type === 'base64' ? base64Part(source.data, source.media_type) : mediaPart(source.url, fallbackType);
}

/** Set apart from what follows, which a model reads as the same text. */
function paragraph(text: string): TextPart {
  return textPart(`${text}\n\n`);
}

function textPart(text: string): TextPart {
  return { type: 'text', text };
}
