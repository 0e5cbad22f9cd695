/** The reader of event streams, fed as a network feeds it. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonError } from '../../core/json/json-error.ts';
import { readServerEvents, type ServerEvent } from '../../cli/server-events.ts';
import { encodeEvent, encodeNamedEvent } from '../../gateway/wire/event-stream.ts';
import { runs } from '../support/sampling.ts';

async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function read(text: string, sizes: readonly number[] = [text.length + 1]): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of readServerEvents(pieces(new TextEncoder().encode(text), sizes))) events.push(event);
  return events;
}

test('what our server writes is read again, however it is cut into pieces', async () => {
  const event = fc.record({ name: fc.stringMatching(/^[a-z.]{1,20}$/), data: fc.jsonValue() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
      async (events, sizes) => {
        const text = events.map(({ name, data }) => `: keep-alive\n\n${encodeNamedEvent(name, data)}`).join('');
        expect(await read(text, sizes)).toEqual(JSON.parse(JSON.stringify(events)));
      },
    ),
    runs(400),
  );
});

test('names, comments, lines and ends as the standard has them', async () => {
  expect(await read(encodeEvent(1))).toEqual([{ name: 'message', data: 1 }]);
  expect(await read('event: a\r\ndata: [\r\ndata: 1]\r\n\r\n')).toEqual([{ name: 'a', data: [1] }]);
  expect(await read('event:a\ndata:"x"\nid: 7\nretry\n\nevent: cut off\ndata: 2\n')).toEqual([
    { name: 'a', data: 'x' },
  ]);
  expect(await read('event: nothing\n\n: only a comment\n\n')).toEqual([]);
});

test('what is not JSON, and what never ends, is an error', async () => {
  await expect(read('data: {\n\n')).rejects.toThrow(JsonError);
  await expect(read(`data: "${'x'.repeat(9 * 1024 * 1024)}`)).rejects.toThrow(RangeError);
});
