/**
 * Makes many requests from where it runs: reads their list as JSON from standard input, writes the answers in the same
 * order. One process for all of them, since starting one costs more than a hundred requests.
 * `node dist/test/support/requests-program.js < list`
 */
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import type { PlainAnswer, PlainRequest } from './requests.ts';

const AT_ONCE = 16;

function ask({ url, method, headers, from, bodyBytes, isChunked, body = '' }: PlainRequest): Promise<PlainAnswer> {
  return new Promise((resolve) => {
    const sent = bodyBytes === undefined ? Buffer.from(body) : Buffer.alloc(bodyBytes, ' ');
    const length = isChunked === true ? {} : { 'content-length': String(sent.length) };
    const asked = request(url, { method, headers: { ...length, ...headers }, localAddress: from });
    asked.on('response', (response) => {
      let text = '';
      const finish = (): void => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
        asked.destroy();
      };
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.on('end', finish);
      // Feeds do not end by themselves.
      if (response.headers['content-type']?.startsWith('text/event-stream') === true) finish();
    });
    asked.on('error', (error) => resolve({ status: 0, headers: {}, body: String(error) }));
    for (let at = 0; at < sent.length; at += 65_536) asked.write(sent.subarray(at, at + 65_536));
    asked.end();
  });
}

const list = (await json(process.stdin)) as PlainRequest[];
const answers: PlainAnswer[] = [];
let next = 0;
async function work(): Promise<void> {
  while (next < list.length) {
    const at = next;
    next += 1;
    answers[at] = await ask(list[at]!);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
process.stdout.write(JSON.stringify(answers));
