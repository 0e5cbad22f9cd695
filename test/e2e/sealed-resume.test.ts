/** A phone that was put away, in the middle of an answer: what it finds when it is taken out again, and what goes on meanwhile. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { InnerAnswer } from '../../gateway/sealed/inner-request.ts';
import { KEPT_BYTES, KEPT_MS } from '../../gateway/sealed/replay-buffer.ts';
import { connect, type PairedDevice, type PosternClient } from '../../clients/sdk/index.ts';
import {
  newPairedDevice,
  openDoorHere,
  streamOf,
  type BreakableTransport,
  type DoorHere,
} from '../support/channel-server-here.ts';
import { endless, user } from '../support/request-log.ts';
import { codeOf, post, tap } from '../support/sealed-client.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ServiceHere;
let device: PairedDevice;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home, { 'inference.concurrentSessions': 1 });
  device = await newPairedDevice(service);
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

interface Phone {
  readonly here: DoorHere;
  readonly client: PosternClient;
  readonly way: BreakableTransport;
}

async function phoneAt(run: () => InnerAnswer): Promise<Phone> {
  const here = await openDoorHere(service, run);
  const way = here.newTransport();
  const { now, setTimer } = here.time;
  return { here, way, client: connect(device, { now, setTimer, transports: [way] }) };
}

/** A body as it comes. */
async function* textOf(response: Response): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

/** Lets the clock go on until the promise is settled. */
async function settled<Value>({ here: { time } }: Phone, promise: Promise<Value>, stepMs = 10): Promise<Value> {
  let isOver = false;
  void promise.catch(() => undefined).finally(() => (isOver = true));
  await until(() => isOver || (time.advance(stepMs), undefined));
  return promise;
}

/** A call whose answer has begun: `one` was read of it. */
async function begin(phone: Phone, words: { readonly push: (piece: string) => void }): Promise<AsyncGenerator<string>> {
  const response = await settled(phone, phone.client.fetch('/v1/x', post));
  const text = textOf(response);
  words.push('one ');
  expect((await settled(phone, text.next())).value).toBe('one ');
  return text;
}

async function restOf(text: AsyncIterable<string>): Promise<string> {
  let rest = '';
  for await (const piece of text) rest += piece;
  return rest;
}

/** A stream that the test feeds and ends. */
function source(): { readonly run: () => InnerAnswer; readonly push: (piece: string) => void } {
  const { body, push } = tap();
  async function* untilEnd(): AsyncGenerator<string> {
    for await (const piece of body) {
      if (piece === END) return;
      yield piece;
    }
  }
  return { run: () => streamOf(untilEnd()), push };
}
const END = 'the end';

test('90 s without an event, and the rest is there: no gap, nothing twice', async () => {
  const words = source();
  const phone = await phoneAt(words.run);
  const text = await begin(phone, words);
  phone.way.freeze();
  const reading = restOf(text);
  const said = Array.from({ length: 90 }, (_, second) => `w${second} `);
  for (const word of said) {
    words.push(word);
    // What the phone tries meanwhile gets nowhere, which is worse for it than to sleep.
    phone.here.time.advance(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  words.push(END);
  phone.way.thaw();
  expect(await settled(phone, reading, 200)).toBe(said.join(''));
  expect(phone.here.ran.length).toBe(1);
});

test('121 s are too long: the answer is cut off, and that is said', async () => {
  const words = source();
  const phone = await phoneAt(words.run);
  const text = await begin(phone, words);
  phone.way.freeze();
  words.push('two ');
  words.push(END);
  await until(() => (phone.here.time.advance(10), phone.way.swallowedBytes > 0));
  phone.here.time.sleep(KEPT_MS + 1000);
  phone.way.thaw();
  expect(await settled(phone, codeOf(restOf(text)), 100)).toBe('records_gone');
  await until(() => phone.here.channelServer.counts().calls === 0 || (phone.here.time.advance(1000), undefined));
});

test('more than a mebibyte is too much: the answer is cut off, and that is said', async () => {
  const words = source();
  const phone = await phoneAt(words.run);
  const text = await begin(phone, words);
  phone.way.freeze();
  for (let bytes = 0; bytes < KEPT_BYTES + 300_000; bytes += 60_000) {
    words.push('x'.repeat(60_000));
    await until(() => (phone.here.time.advance(10), phone.way.swallowedBytes > bytes));
  }
  words.push(END);
  phone.way.thaw();
  expect(await settled(phone, codeOf(restOf(text)), 500)).toBe('records_gone');
});

test('a cancel stops the work at once; a way that breaks does so after 120 s, and not before', async () => {
  const words = source();
  const phone = await phoneAt(words.run);
  const stop = new AbortController();
  const response = await settled(phone, phone.client.fetch('/v1/x', { ...post, signal: stop.signal }));
  const cancelled = codeOf(restOf(textOf(response)));
  expect(phone.here.ran[0]!.signal.aborted).toBe(false);
  const before = phone.here.time.now();
  stop.abort();
  await until(() => phone.here.ran[0]!.signal.aborted);
  expect(phone.here.time.now()).toBe(before);
  expect(await cancelled).toBeInstanceOf(DOMException);

  await settled(phone, phone.client.fetch('/v1/x', post));
  phone.way.cut();
  phone.way.freeze();
  await new Promise((resolve) => setImmediate(resolve));
  phone.here.time.advance(KEPT_MS - 1);
  expect(phone.here.ran[1]!.signal.aborted).toBe(false);
  phone.here.time.advance(1);
  expect(phone.here.ran[1]!.signal.aborted).toBe(true);
});

test('a cancel makes room on the model: the next in line begins', async () => {
  const client = connect({ ...device, urls: [service.url] });
  const ask = (body: object, signal?: AbortSignal): Promise<Response> => {
    const json = JSON.stringify({ model: 'foundation', ...body });
    return client.fetch('/v1/chat/completions', { ...post, body: json, ...(signal === undefined ? {} : { signal }) });
  };
  const stop = new AbortController();
  const running = await ask({ ...endless, stream: true }, stop.signal);
  const read = codeOf(restOf(textOf(running)));
  let isAnswered = false;
  const next = ask({ ...user('What is the capital of France?'), max_tokens: 2 }).then((response) => response.json());
  void next.finally(() => (isAnswered = true));
  const { inference } = service.running;
  await until(() => [...inference.status().inflight.values()].some(({ queued }) => queued > 0));
  expect(isAnswered).toBe(false);
  stop.abort();
  expect(await next).toMatchObject({ object: 'chat.completion' });
  expect(await read).toBeInstanceOf(DOMException);
  client.close();
});
