/** Which proxy leads out, by the variables that curl and most others obey: `HTTPS_PROXY`, and `NO_PROXY` for exceptions. */

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/** @returns the proxy's address, or undefined for a direct connection */
export function findProxy(url: string, environment: ProxyEnvironment): string | undefined {
  const proxy = environment['https_proxy'] ?? environment['HTTPS_PROXY'] ?? '';
  if (proxy === '' || isExcepted(new URL(url), environment['no_proxy'] ?? environment['NO_PROXY'] ?? ''))
    return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** `NO_PROXY`: names or addresses, each good for what is below it too, with or without a port; `*` is all. */
function isExcepted({ hostname, port, protocol }: URL, list: string): boolean {
  const host = bare(hostname);
  const actualPort = port === '' ? (protocol === 'wss:' ? '443' : '80') : port;
  return list.split(/[\s,]+/u).some((entry) => {
    if (entry === '*') return true;
    const [, name = '', wantedPort] = /^(\[[^\]]*\]|[^:]*|.*:.*:.*?)(?::([0-9]+))?$/u.exec(entry) ?? [];
    const wanted = bare(name).replace(/^\*?\./u, '');
    if (wanted === '' || (wantedPort !== undefined && wantedPort !== actualPort)) return false;
    return host === wanted || host.endsWith(`.${wanted}`);
  });
}

function bare(host: string): string {
  return host.toLowerCase().replaceAll(/[[\]]/gu, '');
}
