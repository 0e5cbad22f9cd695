/**
 * Holds as many connections as it is let: opens them, sends the head of a request on each and never its body. When no
 * more than HELD are left it writes one line of JSON, and ends when its standard input does.
 * `node dist/test/support/holding-program.js HOST PORT COUNT HELD FROM...`
 */
import { connect } from 'node:net';

const [host = '', port = '', count = '', held = '', ...addresses] = process.argv.slice(2);
const HEAD = `POST /v1/chat/completions HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 10\r\n\r\n`;

/** By status, and `cut` without one. */
const refused: Record<string, number> = {};
let left = Number(count);
function refuse(why: string): void {
  refused[why] = (refused[why] ?? 0) + 1;
  left -= 1;
  if (left === Number(held)) process.stdout.write(`${JSON.stringify(refused)}\n`);
}

for (let at = 0; at < Number(count); at++) {
  const socket = connect({ host, port: Number(port), localAddress: addresses[at % addresses.length] });
  let status: string | undefined;
  socket.once('data', (bytes: Buffer) => (status = bytes.toString('latin1').split(' ')[1]));
  socket.on('error', () => undefined).once('close', () => refuse(status ?? 'cut'));
  socket.write(HEAD);
}
process.stdin.on('end', () => process.exit()).resume();
