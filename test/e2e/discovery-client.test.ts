/** The SDK's side of pairing by a code, with its gateway, however that ends. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, deviceEntry } from '../../clients/sdk/index.ts';
import { describeGateway, pairByCode } from '../../clients/sdk/pair-by-code.ts';
import { CodePairing, description } from '../support/code-pairing.ts';
import { wrong } from '../support/raw-discovery.ts';
import { codeOf } from '../support/sealed-client.ts';

let lan: CodePairing;

beforeEach(async () => {
  lan = await CodePairing.start();
});
afterEach(() => lan.end());

describe('the digits that the gateway shows', () => {
  const restartMeanwhile = async () => {
    const code = await lan.shownCode();
    await lan.restart();
    return code;
  };

  test('make a device that can call, and that alone is stored', async () => {
    const asked: unknown[] = [];
    const found = await describeGateway(lan.service.url);
    const paired = await pairByCode(`${lan.service.url}/`, {
      device: description,
      storage: lan.storage,
      askCode: async (tryNumber, gateway) => {
        asked.push([tryNumber, gateway]);
        return Array.from(await lan.shownCode()).join(' ');
      },
    });
    expect(asked).toEqual([[1, found]]);
    expect(paired).toMatchObject({ gatewayId: found.gatewayId, urls: [lan.service.url], gatewayName: found.name });
    expect((await lan.service.cli('identity', 'show')).stdout).toContain(found.gatewayId);
    expect(lan.writes).toEqual([deviceEntry(paired.gatewayId)]);
    expect((await connect(paired).fetch('/v1/models')).status).toBe(200);
    expect(await lan.devices()).toMatchObject([{ id: paired.deviceId, ...description }]);
  });

  test('are asked for again while they are wrong, and are right at the third', async () => {
    const tries: number[] = [];
    await lan.pairAt(lan.service.url, async (tryNumber) => {
      tries.push(tryNumber);
      const code = await lan.shownCode();
      return tryNumber === 3 ? code : wrong(code, tryNumber);
    });
    expect(tries).toEqual([1, 2, 3]);
    expect(lan.writes).toHaveLength(1);
  });

  test.each([
    ['code_wrong', 'wrong three times', async (n: number) => wrong(await lan.shownCode(), n)],
    ['code_denied', 'denied', async () => lan.shownCode().finally(() => lan.deny())],
    ['code_expired', 'of a service that was restarted', restartMeanwhile],
  ] as const)('end as %s where they are %s', async (expected, _, askCode) => {
    expect(await codeOf(lan.pairAt(lan.service.url, askCode))).toBe(expected);
    await lan.expectNothing();
  });

  test('are not six digits: the caller’s own mistake, and no try', async () => {
    expect(await codeOf(lan.pairAt(lan.service.url, async () => '12345'))).toBeInstanceOf(RangeError);
    await lan.expectNothing();
  });

  test('are not typed: what the caller throws ends it, and so does its signal', async () => {
    const given = new Error('given up');
    expect(await codeOf(lan.pairAt(lan.service.url, () => Promise.reject(given)))).toBe(given);
    lan.expectNoQuestion();
    const leaving = new AbortController();
    const askCode = () => new Promise<string>(() => leaving.abort(given));
    expect(
      await codeOf(
        pairByCode(lan.service.url, { device: description, storage: lan.storage, askCode, signal: leaving.signal }),
      ),
    ).toBe(given);
    lan.expectNoQuestion();
    await lan.expectNothing();
  });

  test('are shown once to each device at a time', async () => {
    const first = lan.pairAt(lan.service.url, () => new Promise(() => undefined));
    await lan.shownCode();
    expect(await codeOf(lan.pairAt(lan.service.url))).toBe('code_busy');
    void first;
    await lan.expectNothing();
  });

  test('are not shown where the owner does not want it, or where no gateway is', async () => {
    const page = await lan.fake(() => Buffer.from('<html>a printer</html>'));
    expect(await codeOf(lan.pairAt(page.url))).toBe('code_not_offered');
    expect(await codeOf(describeGateway('file:///etc/passwd'))).toBe('code_not_offered');
    expect(await codeOf(describeGateway('http://127.0.0.1:1'))).toBe('offline');
    await lan.restart({ 'pairing.discovery': false });
    expect(await codeOf(lan.pairAt(lan.service.url))).toBe('code_not_offered');
    await lan.expectNothing();
  });
});

test('a gateway that can pair nobody at the moment says so, before the code is asked for and after', async () => {
  const refusal = { error: { code: 'identity_unavailable', message: '', type: 'internal_error', param: null } };
  const body = Buffer.from(JSON.stringify(refusal));
  const closed = await lan.fake(() => body);
  expect(await codeOf(lan.pairAt(closed.url))).toBe('gateway_unavailable');
  const closing = await lan.between(async (passing, forward) =>
    passing.body[1] === 0x22 ? { status: 503, body } : forward(passing),
  );
  expect(await codeOf(lan.pairAt(closing.url))).toBe('gateway_unavailable');
  await lan.expectNothing();
});

describe('a broken network', () => {
  /** Loses the answer to the first message of this kind, which has arrived. */
  const losing = (kind: number, times = 1) => {
    let left = times;
    return lan.between(async (passing, forward) => {
      const answer = await forward(passing);
      if (passing.body[1] !== kind || left-- <= 0) return answer;
      return { status: 200, body: answer.body.subarray(0, 0) };
    });
  };

  test('that loses the answer to the proof costs no try', async () => {
    const cut = await lan.between(async (passing, forward) => forward(passing));
    let left = 1;
    const fetchOnce: typeof fetch = async (url, init) => {
      const answer = await fetch(url, init);
      const isProof = init?.body instanceof Uint8Array && init.body[1] === 0x22;
      if (isProof && left-- > 0) throw new TypeError('the network is gone');
      return answer;
    };
    const tries: number[] = [];
    const askCode = async (tryNumber: number) => {
      tries.push(tryNumber);
      return tryNumber === 1 ? wrong(await lan.shownCode()) : lan.shownCode();
    };
    await pairByCode(cut.url, {
      device: description,
      storage: lan.storage,
      askCode,
      fetch: (url, init) => fetchOnce(url, init),
    });
    expect(tries).toEqual([1, 2]);
    // The lost one, again, the second try.
    expect(cut.seen.filter(({ body }) => body[1] === 0x22)).toHaveLength(3);
  });

  test('that loses the last answer loses nothing: it comes again', async () => {
    const cut = await losing(0x03);
    const paired = await lan.pairAt(cut.url);
    expect(await lan.devices()).toMatchObject([{ id: paired.deviceId }]);
  });

  test('that answers nothing ends it', async () => {
    expect(await codeOf(lan.pairAt((await losing(0x22, 9)).url))).toBe('incompatible');
    lan.expectNoQuestion();
    await lan.expectNothing();
  });
});
