/** Bodies that cost most for their length, each as long as it may be: what stands in a field where a route looks first. */
import { Buffer } from 'node:buffer';

export interface WorstBody {
  readonly name: string;
  /** @param field that the route reads. @param bytes how long it may be at most */
  readonly make: (field: string, bytes: number) => Buffer;
}

/** So many of a unit that all of it has about so many bytes. */
function filled(head: string, unit: string, tail: string, bytes: number): Buffer {
  const size = Buffer.byteLength(unit);
  const count = Math.max(1, Math.floor((bytes - head.length - tail.length) / size));
  return Buffer.concat([Buffer.from(head), Buffer.alloc(count * size, unit), Buffer.from(tail)]);
}

const START = '{"model":"foundation","max_tokens":1,';

/** The field holds so many of the unit. */
function many(name: string, open: string, unit: string, close: string): WorstBody {
  return { name, make: (field, bytes) => filled(`${START}"${field}":${open}`, unit, `${close}}`, bytes) };
}

/** So many of something that is numbered. */
function numbered(name: string, most: number, make: (at: number) => string, open: string, close: string): WorstBody {
  return {
    name,
    make(field, bytes) {
      const parts: string[] = [];
      let length = 200;
      for (let at = 0; at < most && length < bytes; at += 1) {
        const part = make(at);
        length += part.length + 1;
        if (length < bytes) parts.push(part);
      }
      return Buffer.from(`${START}"${field}":${open}${parts.join(',')}${close}}`);
    },
  };
}

const message = (content: string) => `{"role":"user","content":${content}}`;
const tool = (at: number) =>
  `{"type":"function","function":{"name":"t${at}","parameters":{"type":"object","properties":${JSON.stringify(
    Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`p${n}`, { type: 'string', description: 'd' }])),
  )}}}}`;

export const worstBodies: readonly WorstBody[] = [
  many('an array of zeros', '[', '0,', '0]'),
  many('an array of empty objects', '[', '{},', '{}]'),
  many('arrays in arrays, never closed', '', '[', ''),
  many('objects in objects, never closed', '', '{"a":', ''),
  many('arrays of arrays of arrays', '[', '[[[]],[]],', '[]]'),
  many('the same key again and again', '{', '"a":0,', '"a":0}'),
  numbered('a million different keys', 1_000_000, (at) => `"k${at}":0`, '{', '}'),
  numbered('objects of as many shapes', 500_000, (at) => `{"k${at}":0}`, '[', ']'),
  many('one number', '', '7', ''),
  many('one text', '"', 'a', '"'),
  many('one text, in Chinese', '"', '中', '"'),
  many('one text, all of it escaped', '"', '\\u4e2d', '"'),
  many('one text of line feeds', '"', '\\n', '"'),
  many('a message with one text', '[{"role":"user","content":"', 'word ', '"}]'),
  many('ten thousand messages that are all wrong', '[', `${message('0')},`, `${message('0')}]`),
  numbered('ten thousand messages that are right', 10_000, () => message('"hi"'), '[', ']'),
  numbered('ten thousand parts', 9990, () => '{"type":"text","text":"a"}', '[{"role":"user","content":[', ']}]'),
  many(
    'a data URL that never says where its data is',
    '[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:',
    'a',
    '"}}]}]',
  ),
  many(
    'the arguments of a call, arrays in arrays',
    '[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"',
    '[[],',
    '"}}]}]',
  ),
  numbered('three thousand tools', 3000, tool, '"hi","tools":[', ']'),
  {
    name: 'a schema whose definitions use each other',
    make: (field) => {
      const refs = Array.from({ length: 40 }, (_, at) => [
        `d${at}`,
        { anyOf: Array.from({ length: 8 }, (__, n) => ({ $ref: `#/$defs/d${(at + n + 1) % 40}` })) },
      ]);
      const schema = { $ref: '#/$defs/d0', $defs: Object.fromEntries(refs) };
      const asked = { model: 'foundation', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }], prompt: 'hi' };
      const format = { type: 'json_schema', json_schema: { name: 's', schema } };
      return Buffer.from(
        JSON.stringify({ ...asked, [field]: [{ role: 'user', content: 'hi' }], response_format: format }),
      );
    },
  },
];

/** An address as long as it may be, with a host that takes longest to read: half a millisecond each. */
const slowAddress = `http://${'é'.repeat(4000)}/`;

interface Parts {
  readonly count: number;
  readonly make: (at: number) => unknown;
}

/** In one message. */
const PARTS = 4000;

/** Messages of so many parts in all, or as many as there is room for. */
function messagesOf(role: string, field: string, { count, make }: Parts, bytes: number): object[] {
  const size = Buffer.byteLength(JSON.stringify(make(count))) + 1;
  const all = Array.from({ length: Math.min(count, Math.floor((bytes - 1000) / size)) }, (_, at) => make(at));
  return Array.from({ length: Math.ceil(all.length / PARTS) }, (_, at) => ({
    role,
    [field]: all.slice(at * PARTS, (at + 1) * PARTS),
  }));
}

function requestWith(name: string, make: (bytes: number) => object): WorstBody {
  const common = { model: 'foundation', max_tokens: 1 };
  return { name, make: (_field, bytes) => Buffer.from(JSON.stringify({ ...common, ...make(bytes) })) };
}

function manyParts(name: string, role: string, field: string, parts: Parts): WorstBody {
  return requestWith(name, (bytes) => ({ messages: messagesOf(role, field, parts, bytes) }));
}

const manyMembers = Object.fromEntries(Array.from({ length: 9900 }, (_, at) => [`k${at}`, 0]));
const toolsOfManyMembers = (make: (at: number) => object): WorstBody =>
  requestWith('tools whose schemas have very many members', () => ({
    messages: [{ role: 'user', content: 'hi' }],
    tools: Array.from({ length: 12 }, (_, at) => make(at)),
  }));
const functionOfManyMembers = (at: number) => ({
  type: 'function',
  function: { name: `t${at}`, parameters: manyMembers },
});

const call = (text: string) => (at: number) => ({ id: `c${at}`, function: { name: 'f', arguments: text } });
const anthropic = [
  toolsOfManyMembers((at) => ({ name: `t${at}`, input_schema: manyMembers })),
  manyParts('addresses of pictures', 'user', 'content', {
    count: 10_000,
    make: () => ({ type: 'image', source: { type: 'url', url: slowAddress } }),
  }),
  manyParts('calls of tools', 'assistant', 'content', {
    count: 30_000,
    make: (at) => ({ type: 'tool_use', id: `c${at}`, name: 'f', input: {} }),
  }),
  manyParts('blocks of as many types', 'user', 'content', { count: 70_000, make: (at) => ({ type: `t${at}` }) }),
];

/** Many small works in one body, each of which is nothing: for the routes that do them. */
export const bodiesOfMany: Readonly<Record<string, readonly WorstBody[]>> = {
  '/chat/completions': [
    toolsOfManyMembers(functionOfManyMembers),
    manyParts('calls of tools in one message', 'assistant', 'tool_calls', { count: 9000, make: call('{}') }),
    manyParts('calls whose arguments are no JSON', 'assistant', 'tool_calls', { count: 25_000, make: call('{') }),
    manyParts('addresses of pictures', 'user', 'content', {
      count: 10_000,
      make: () => ({ type: 'image_url', image_url: { url: slowAddress } }),
    }),
  ],
  '/messages': anthropic,
  '/messages/count_tokens': anthropic,
  '/responses': [
    requestWith('tools in namespaces', () => ({
      input: 'hi',
      tools: [0, 1, 2].map((group) => ({
        type: 'namespace',
        name: `n${group}${'x'.repeat(200)}`,
        tools: Array.from({ length: 9000 }, (_, at) => ({ type: 'function', name: `f${at}` })),
      })),
    })),
    requestWith('calls of tools', () => ({
      input: Array.from({ length: 9999 }, (_, at) => ({
        type: 'function_call',
        call_id: `c${at}`,
        name: `f${at}`,
        namespace: 'n'.repeat(200),
        arguments: '{',
      })),
    })),
    requestWith('addresses of pictures', (bytes) => ({
      input: messagesOf(
        'user',
        'content',
        { count: 10_000, make: () => ({ type: 'input_image', image_url: slowAddress }) },
        bytes,
      ),
    })),
  ],
  '/chat': [
    toolsOfManyMembers(functionOfManyMembers),
    manyParts('addresses of pictures', 'user', 'images', { count: 10_000, make: () => slowAddress }),
    manyParts('calls of tools', 'assistant', 'tool_calls', {
      count: 25_000,
      make: (at) => ({ function: { name: `f${at}`, arguments: {} } }),
    }),
  ],
  '/generate': [
    requestWith('addresses of pictures', () => ({
      prompt: 'hi',
      images: Array.from({ length: 4000 }, () => slowAddress),
    })),
  ],
};
