/** What becomes of what the program writes to its own two streams, which may be files on a disk that is full. */
import { isRecord } from '../core/json.ts';

interface OutputStreams {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
  /** Called when data has nowhere to go, once or more. @param readerLeft whoever read has seen enough (`| head`) */
  readonly onLost: (readerLeft: boolean) => void;
}

/** @returns the code of the error by which data was lost; a reader that left is none */
export function watchOutput({ stdout, stderr, onLost }: OutputStreams): { loss(): string | undefined } {
  let loss: string | undefined;
  stdout.on('error', (error: unknown) => {
    const code = isRecord(error) ? String(error['code']) : 'unknown';
    const readerLeft = code === 'EPIPE';
    if (!readerLeft) loss ??= code;
    onLost(readerLeft);
  });
  // Words are for whoever reads along: a service goes on without, and is heard again when there is room.
  stderr.on('error', () => undefined);
  return { loss: () => loss };
}
