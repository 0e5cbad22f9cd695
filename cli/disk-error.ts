import { isRecord } from '../core/json.ts';
import { CommandError } from './command.ts';

/** A disk's refusal in one line; any other error as it is. */
export function explainDiskError(error: unknown, folder: string): unknown {
  const code = isRecord(error) && typeof error['code'] === 'string' ? error['code'] : '';
  const isOfDisk = isRecord(error) && (typeof error['syscall'] === 'string' || code.startsWith('SQLITE_'));
  return isOfDisk ? new CommandError(`${folder} can not be written to as it should be (${code}).`) : error;
}
