/** How far a download has come: a bar on a screen, else a line for every tenth. */
import type { Terminal } from './command.ts';
import { formatBytes } from './format-bytes.ts';

export interface Progress {
  update(doneBytes: number): void;
  /** Takes the bar away; says nothing. */
  end(): void;
}

interface ProgressOptions {
  readonly terminal: Terminal;
  readonly totalBytes: number;
  /** What is there already. */
  readonly doneBytes: number;
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number;
}

export function startProgress(options: ProgressOptions): Progress {
  return options.terminal.rewrite === undefined
    ? progressLines(options)
    : progressBar(options, options.terminal.rewrite);
}

function progressLines({ terminal, totalBytes, doneBytes }: ProgressOptions): Progress {
  const tenthOf = (bytes: number): number => Math.floor((10 * bytes) / totalBytes);
  let said = tenthOf(doneBytes);
  return {
    update: (bytes) => {
      if (tenthOf(bytes) <= said) return;
      said = tenthOf(bytes);
      terminal.say(`${said * 10} %, ${formatBytes(bytes)} of ${formatBytes(totalBytes)}`);
    },
    end: () => undefined,
  };
}

/** More often than this nobody can read. */
const REWRITE_MS = 200;

/** The rate is that of the last moments: long enough not to flicker, short enough to notice a change. */
const RATE_WINDOW_MS = 5000;

function progressBar({ totalBytes, now }: ProgressOptions, rewrite: (text: string) => void): Progress {
  let samples: readonly Sample[] = [];
  let shownAtMs = -Infinity;
  return {
    update: (bytes) => {
      const sample = { atMs: now(), bytes };
      if (sample.atMs - shownAtMs < REWRITE_MS && bytes < totalBytes) return;
      shownAtMs = sample.atMs;
      samples = [...samples.filter(({ atMs }) => sample.atMs - atMs < RATE_WINDOW_MS), sample];
      rewrite(barText(samples, totalBytes));
    },
    end: () => rewrite(''),
  };
}

interface Sample {
  readonly atMs: number;
  readonly bytes: number;
}

const BAR_WIDTH = 24;

function barText(samples: readonly Sample[], totalBytes: number): string {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return '';
  const share = last.bytes / totalBytes;
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`;
  const done = `${bar} ${Math.floor(share * 100)} %  ${formatBytes(last.bytes)} of ${formatBytes(totalBytes)}`;
  const bytesPerMs = (last.bytes - first.bytes) / (last.atMs - first.atMs);
  if (!Number.isFinite(bytesPerMs) || bytesPerMs <= 0) return done;
  return `${done}  ${formatBytes(bytesPerMs * 1000)}/s  ${formatTime((totalBytes - last.bytes) / bytesPerMs)} left`;
}

/** `0:07`, `12:00`, `1:02:03`. */
function formatTime(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (value: number): string => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
