/** One name for one thing, and the field's own where it has one: words that were taken out do not come back. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** Names, and what they are called instead. */
const NAMES: Readonly<Record<string, string>> = {
  'SealedDoor|lateDoor|OpenDoor': 'ChannelServer',
  'DiscoveryDesk|PairingDesk': 'CodePairingDesk, InvitePairing',
  'Whereabouts|onMoved': 'Endpoints, onEndpointsChanged',
  'Homecoming|ChosenWay|watchWay': 'PathUpgrade, ChosenPath, watchPath',
  '\\w+Wish': '…Params',
  'Judge|Judged|createJudge': 'Authorize, AuthResult',
  'foresee|requireSound|isSound': 'preview, assertValid, isValid',
  'RevocationPartner|companionsOf': 'RevocationHook, linkedKeys',
  '\\w*Keeper': '…Admin, or the name of the store',
  'AnswerLog|Ticks': 'ReplayBuffer, Coalescer',
  'WaitingLine|createWaitingLine': 'FairQueue',
  'onDeath|runnerDeaths|onRunnerDeath': 'onExit, runnerCrashes',
  'FAREWELL_MS|LAST_WORDS_MS': 'CLOSE_GRACE_MS',
  'InboundMeter|decodeBeyondBeat|sendAway': 'ReceiveWindow, decodeAfterKeepAlive, sendGoaway',
  'createRecent|Sighting|lookAround': 'createLruCache, ServiceInstance, browse',
  'thoughtless|isWise|isUninvited': 'noThinking, confirmFit, isUntrustedOrigin',
  '(?:interface|type|class) (?:Asked|Asking|Confirmation)|isAsked': 'a name of its own, such as HandshakeRequest',
  'party|ofParty|wrongOfParty': 'client, clientKey',
  'patience|patienceMs': 'timeout, timeoutMs',
};

/** Said to users, in the program and in its documents. */
const PHRASES: Readonly<Record<string, string>> = {
  'can not': 'can’t or cannot',
  'waits for your word': 'awaits your approval',
  'is dialled again': 'Reconnecting',
  'counts no more': 'is no longer valid',
  'on this way': 'here',
};

interface File {
  readonly path: string;
  readonly text: string;
}

function filesOf(...patterns: readonly string[]): readonly File[] {
  const paths = execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n');
  return paths
    .filter((path) => !path.endsWith('vocabulary.test.ts'))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

function found(files: readonly File[], words: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(words).flatMap(([pattern, instead]) =>
    files.flatMap(({ path, text }) => {
      const [word] = new RegExp(`(?<![\\w])(?:${pattern})(?![\\w])`).exec(text) ?? [];
      return word === undefined ? [] : [`${path}: ${word}: say ${instead}`];
    }),
  );
}

test('names', () => {
  expect(found(filesOf('*.ts'), NAMES)).toEqual([]);
});

test('phrases', () => {
  expect(found(filesOf('*.ts', '*.md'), PHRASES)).toEqual([]);
});

test('a planted word is found', () => {
  const text = 'export class SealedDoor {} // It can not be, and waits for your word.';
  expect(found([{ path: 'a.ts', text }], NAMES)).toEqual(['a.ts: SealedDoor: say ChannelServer']);
  expect(found([{ path: 'a.ts', text }], PHRASES)).toHaveLength(2);
});
