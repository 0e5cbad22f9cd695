/** Reverse proxies from Debian in front of a port, with next to nothing configured. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './wait.ts';

export type ProxyName = 'nginx' | 'HAProxy' | 'socat';

export interface ReverseProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** What each is told, and how it is started. Their masters are root; of nginx and HAProxy other users do the work. */
const PROXIES: Readonly<Record<ProxyName, (folder: string, port: number, target: number) => Launch>> = {
  nginx: (folder, port, target) => ({
    file: 'nginx.conf',
    text: `daemon off; user www-data; pid ${folder}/pid; error_log stderr; events {}
      http { access_log off; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
        fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
        server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${target}; } } }`,
    command: ['nginx', '-c', `${folder}/nginx.conf`],
  }),
  HAProxy: (folder, port, target) => ({
    file: 'haproxy.cfg',
    text: `global
  user haproxy
  group haproxy
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend in
  bind 127.0.0.1:${port}
  default_backend out
backend out
  server postern 127.0.0.1:${target}
`,
    command: ['haproxy', '-db', '-f', `${folder}/haproxy.cfg`],
  }),
  socat: (_, port, target) => ({
    file: 'none',
    text: '',
    command: ['socat', `TCP-LISTEN:${port},bind=127.0.0.1,fork,reuseaddr`, `TCP:127.0.0.1:${target}`],
  }),
};

interface Launch {
  readonly file: string;
  readonly text: string;
  readonly command: readonly string[];
}

/** @param target the port that it stands in front of */
export async function startProxy(name: ProxyName, target: number): Promise<ReverseProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-proxy-'));
  const port = await freePort();
  const { file, text, command } = PROXIES[name](folder, port, target);
  await writeFile(join(folder, file), text);
  const child = spawn(command[0]!, command.slice(1), { stdio: 'ignore' });
  await until(() => isListening(port));
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      await ended(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const answered = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return answered;
}
