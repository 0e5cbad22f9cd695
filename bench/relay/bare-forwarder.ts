/** The least that a forwarder can be: of two WebSockets, whatever comes from one goes to the other. */
import { WebSocketServer, type WebSocket } from 'ws';

const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
let waiting: WebSocket | undefined;
server.on('connection', (socket) => {
  if (waiting === undefined) {
    waiting = socket;
    return;
  }
  const [one, other] = [waiting, socket];
  waiting = undefined;
  one.on('message', (data, binary) => other.send(data, { binary }));
  other.on('message', (data, binary) => one.send(data, { binary }));
});
server.on('listening', () => console.log(JSON.stringify(server.address())));
