import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { createRequestLog, openRequestLog, type RequestLog } from '../../../gateway/request-log/request-log.ts';
import type { RequestFilter } from '../../../gateway/request-log/request-query.ts';
import { requestEntry } from '../../support/request-entry.ts';

const START = 1_700_000_000_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let home: string;
let database: Database;
let time: number;
let log: RequestLog;
let failures: string[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  home = mkdtempSync(join(tmpdir(), 'postern-log-'));
  time = START;
  failures = [];
  open();
});
afterEach(() => {
  close();
  vi.useRealTimers();
  rmSync(home, { recursive: true, force: true });
});

/** What waits for others is written now. */
let writePending: () => void = () => undefined;

function open(options: Partial<Parameters<typeof createRequestLog>[0]> = {}): void {
  database = openDatabase(home);
  const setTimer = (_delayMs: number, run: () => void): (() => void) => {
    writePending = run;
    return () => (writePending = () => undefined);
  };
  const onFailure = (message: string): unknown => failures.push(message);
  log = createRequestLog({ database, now: () => time, keepDays: 7, onFailure, setTimer, ...options });
}
function close(): void {
  log.close();
  database.close();
}
const pathsOf = (filter: RequestFilter = {}) => log.list(filter, { limit: 1000 }).map(({ path }) => path);
const filesHold = (words: string) => readdirSync(home).some((name) => readFileSync(join(home, name)).includes(words));

describe('what is kept', () => {
  test('comes back as it was written, after closing and opening too', () => {
    log.write(
      requestEntry({
        method: 'POST',
        path: '/v1/chat/completions',
        route: '/chat/completions',
        durationMs: 12.34567,
        inference: {
          model: 'm',
          finishReason: 'length',
          inputTokens: 9,
          cachedTokens: 3,
          outputTokens: 4,
          firstTokenMs: 5.5,
          generationMs: 6,
          tokensPerSecond: 500,
        },
        requestBody: 'asked',
        responseBody: 'answered',
      }),
    );
    close();
    open();
    expect(log.list({}, { limit: 10 })).toEqual([
      {
        id: 1,
        time: '2023-11-14T22:13:20.000Z',
        source: 'http',
        method: 'POST',
        path: '/v1/chat/completions',
        route: '/chat/completions',
        status: 200,
        duration_ms: 12.346,
        model: 'm',
        requested_model: null,
        input_tokens: 9,
        cached_tokens: 3,
        output_tokens: 4,
        tokens_per_second: 500,
        time_to_first_token_ms: 5.5,
        finish_reason: 'length',
        error_code: null,
        error_message: null,
        caller: 'loopback',
        user_agent: 'curl/8',
        request_id: 'r',
        request_body: 'asked',
        response_body: 'answered',
      },
    ]);
  });

  test('is written together, and found at once by whoever asks here', () => {
    const other = openRequestLog(home)!;
    for (let n = 1; n <= 3; n += 1) log.write(requestEntry({ path: `/${n}` }));
    expect(other.reader.lastId()).toBe(0);
    writePending();
    expect(other.reader.lastId()).toBe(3);
    log.write(requestEntry({ path: '/4' }));
    expect(log.lastId()).toBe(4);
    for (let n = 5; n <= 1000; n += 1) log.write(requestEntry({ path: `/${n}` }));
    // No more of them than a moment's.
    expect(other.reader.lastId()).toBeGreaterThan(1000 - 256);
    close();
    expect(other.reader.lastId()).toBe(1000);
    other.close();
    open();
  });

  test('pages go on where the last one ended, whatever is logged in between', () => {
    for (let n = 1; n <= 5; n += 1) log.write(requestEntry({ path: `/${n}` }));
    const first = log.list({}, { limit: 2 });
    log.write(requestEntry({ path: '/6' }));
    const second = log.list({}, { limit: 2, beforeId: first.at(-1)!.id });
    expect([...first, ...second].map(({ path }) => path)).toEqual(['/5', '/4', '/3', '/2']);
    expect(log.after(first[0]!.id, {}).map(({ path }) => path)).toEqual(['/6']);
  });
});

describe('what goes', () => {
  test('rows of more than so many days, hourly and at the start, and not before', () => {
    log.write(requestEntry({ path: '/old', startedAtMs: time }));
    time += 7 * DAY;
    log.write(requestEntry({ path: '/new', startedAtMs: time }));
    vi.advanceTimersByTime(HOUR);
    expect(pathsOf()).toEqual(['/new', '/old']);
    time += 1;
    vi.advanceTimersByTime(HOUR - 1);
    expect(pathsOf()).toEqual(['/new', '/old']);
    vi.advanceTimersByTime(1);
    expect(pathsOf()).toEqual(['/new']);
    close();
    time += 2 * DAY;
    open({ keepDays: 1 });
    expect(pathsOf()).toEqual([]);
  });

  test('is gone from the files, not only from the table', () => {
    log.write(requestEntry({ requestBody: 'canary-in-a-body', path: '/canary-in-a-path' }));
    writePending();
    expect(filesHold('canary-in-a-body')).toBe(true);
    expect(log.clear()).toBe(1);
    expect(filesHold('canary')).toBe(false);
    log.write(requestEntry({ requestBody: 'canary-in-a-body' }));
    writePending();
    time += 8 * DAY;
    log.prune();
    expect(filesHold('canary')).toBe(false);
  });

  test('ids are never used again, since whoever follows goes by them', () => {
    log.write(requestEntry());
    log.clear();
    log.write(requestEntry());
    expect(log.lastId()).toBe(2);
  });

  test('strangers push out each other, and nobody else', () => {
    close();
    open({ limits: { maxRows: 100_000, maxStrangerRows: 10 } });
    log.write(requestEntry({ path: '/owner' }));
    for (let n = 1; n < 1000; n += 1) {
      log.write(requestEntry({ caller: n % 2 === 0 ? 'anonymous' : undefined, path: `/${n}` }));
    }
    expect(pathsOf()).toEqual([...Array.from({ length: 10 }, (_, n) => `/${999 - n}`), '/owner']);
  });

  test('the oldest, when there are too many', () => {
    close();
    open({ limits: { maxRows: 3, maxStrangerRows: 10 } });
    for (let n = 1; n <= 5; n += 1) log.write(requestEntry({ path: `/${n}` }));
    log.prune();
    expect(pathsOf()).toEqual(['/5', '/4', '/3']);
  });
});

describe('filters and figures', () => {
  beforeEach(() => {
    log.write(requestEntry({ path: '/v1/models', startedAtMs: START + 1 }));
    log.write(requestEntry({ path: '/50%_off', status: 404, errorCode: 'not_found', startedAtMs: START + 2 }));
    log.write(
      requestEntry({
        method: 'POST',
        path: '/v1/messages',
        source: 'sealed',
        durationMs: 40,
        startedAtMs: START + 3,
        inference: { model: 'Qwen3', finishReason: 'stop', generationMs: 1000, tokensPerSecond: 30 },
      }),
    );
    log.write(
      requestEntry({
        method: 'POST',
        path: '/api/chat',
        source: 'chat',
        durationMs: 20,
        startedAtMs: START + 4,
        userAgent: 'ollama/0.6',
        inference: { model: 'qwen3', finishReason: 'error', generationMs: 3000, tokensPerSecond: 10 },
      }),
    );
    log.write(
      requestEntry({
        method: 'POST',
        path: '/gone',
        status: 499,
        inference: { model: 'x', finishReason: 'cancelled' },
      }),
    );
    log.write(requestEntry({ path: '/broken', status: 500, errorCode: 'internal', startedAtMs: START + 6 }));
  });

  test.each<[RequestFilter, readonly string[]]>([
    [{}, ['/broken', '/gone', '/api/chat', '/v1/messages', '/50%_off', '/v1/models']],
    [{ search: 'qwen' }, ['/api/chat', '/v1/messages']],
    [{ search: '/V1/' }, ['/v1/messages', '/v1/models']],
    [{ search: 'ollama' }, ['/api/chat']],
    [{ search: 'not_found' }, ['/50%_off']],
    [{ search: '%' }, ['/50%_off']],
    [{ search: '0%_' }, ['/50%_off']],
    [{ search: 'v1_models' }, []],
    [{ search: '\\' }, []],
    [{ search: "' OR 1=1 --" }, []],
    [{ method: 'POST' }, ['/gone', '/api/chat', '/v1/messages']],
    [{ source: 'sealed' }, ['/v1/messages']],
    [{ source: 'chat' }, ['/api/chat']],
    [{ statusClass: 4 }, ['/gone', '/50%_off']],
    [{ statusClass: 5 }, ['/broken']],
    [{ statusClass: 2 }, ['/api/chat', '/v1/messages', '/v1/models']],
    [{ errors: true }, ['/broken', '/api/chat', '/50%_off']],
    [{ errors: false, method: 'POST' }, ['/gone', '/api/chat', '/v1/messages']],
    [{ sinceMs: START + 4 }, ['/broken', '/api/chat']],
    [{ untilMs: START + 3 }, ['/gone', '/50%_off', '/v1/models']],
    [{ sinceMs: START + 2, untilMs: START + 4 }, ['/v1/messages', '/50%_off']],
    [{ method: 'POST', errors: true, search: 'qwen3' }, ['/api/chat']],
  ])('%j', (filter, paths) => {
    expect(pathsOf(filter)).toEqual(paths);
    expect(log.after(0, filter).map(({ path }) => path)).toEqual(paths.toReversed());
    expect(log.stats(filter).requests).toBe(paths.length);
  });

  test.each<[RequestFilter, object]>([
    [
      {},
      {
        requests: 6,
        success_rate: 0.5,
        errors: 3,
        average_duration_ms: (10 * 4 + 40 + 20) / 6,
        inferences: 3,
        // 30 tokens in one second and 30 in three.
        average_tokens_per_second: 15,
      },
    ],
    [{ source: 'sealed' }, { requests: 1, success_rate: 1, errors: 0, inferences: 1, average_tokens_per_second: 30 }],
    [{ search: '/gone' }, { requests: 1, success_rate: 1, errors: 0, inferences: 1, average_tokens_per_second: null }],
    [
      { search: 'nothing like it' },
      {
        requests: 0,
        success_rate: null,
        errors: 0,
        average_duration_ms: null,
        inferences: 0,
        average_tokens_per_second: null,
      },
    ],
  ])('figures over %j', (filter, figures) => {
    expect(log.stats(filter)).toMatchObject(figures);
  });
});

describe('what goes wrong', () => {
  test('a full disk costs rows, not requests, and is said once each time it happens', () => {
    const free = (pages: number): void => {
      const { page_count: used } = database.prepare<[], { page_count: number }>('PRAGMA page_count').get()!;
      database.pragma(`max_page_count = ${used + pages}`);
    };
    free(0);
    const fill = (): void => {
      for (let n = 0; n < 600; n += 1) log.write(requestEntry({ path: `/${'x'.repeat(200)}` }));
    };
    fill();
    expect(failures).toEqual([expect.stringContaining('SQLITE_FULL')]);
    free(1000);
    log.write(requestEntry({ path: '/again' }));
    expect(pathsOf()[0]).toBe('/again');
    free(0);
    fill();
    expect(failures).toHaveLength(2);
  });

  test('a database that is closed already is no reason to throw', () => {
    database.close();
    log.write(requestEntry());
    writePending();
    expect(failures).toHaveLength(1);
  });
});

describe('read without a server', () => {
  test('what was logged', () => {
    log.write(requestEntry({ path: '/seen' }));
    close();
    const before = readdirSync(home);
    const opened = openRequestLog(home)!;
    expect(opened.reader.list({}, { limit: 5 }).map(({ path }) => path)).toEqual(['/seen']);
    opened.close();
    expect(readdirSync(home)).toEqual(before);
    open();
  });

  test('beside one that writes', () => {
    const opened = openRequestLog(home)!;
    log.write(requestEntry({ path: '/fresh' }));
    writePending();
    expect(opened.reader.after(0, {}).map(({ path }) => path)).toEqual(['/fresh']);
    opened.close();
  });

  test('nothing is made where nothing is', () => {
    const empty = join(home, 'empty');
    expect(openRequestLog(empty)).toBeUndefined();
    expect(readdirSync(home)).not.toContain('empty');
  });

  test('a database without a log, and one of a later version', () => {
    database.exec("UPDATE schema_versions SET version = 99 WHERE module = 'request_log'");
    expect(() => openRequestLog(home)).toThrow('written by a newer version of Postern');
    database.exec("DELETE FROM schema_versions WHERE module = 'request_log'");
    expect(openRequestLog(home)).toBeUndefined();
  });
});
