/** Models that are being fetched. */
import { randomUUID } from 'node:crypto';
import { hubAccess, type HubAccess } from '../core/download/hub-environment.ts';
import { pullJobs, type PullJobs } from '../core/download/pull-job.ts';
import type { ModelSettings } from '../core/inference/local/settings.ts';
import type { Pulls } from '../gateway/pulls.ts';
import { findDiskFault } from '../storage/disk-fault.ts';
import { openJobTable } from '../storage/job-table.ts';
import { createJobs } from '../storage/jobs.ts';
import { reasonOf } from './internal-error.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

export interface OpenPulls extends Pulls {
  readonly jobs: PullJobs;
}

export function openPulls(
  { settings, environment, clock: { elapsed }, say, stopping, onClose }: Start<ModelSettings>,
  { database, storage, events: hub, now }: Storage,
): OpenPulls {
  const modelsDir = settings['models.folder'];
  const access = (): HubAccess => hubAccess(environment);
  const onError = (error: unknown): void => {
    storage.note(error);
    if (findDiskFault(error) === undefined) say(`postern: a model could not be fetched${reasonOf(error)}.`);
  };
  const writeInTime = (write: () => void): void => {
    try {
      write();
    } catch (error) {
      onError(error);
      if (findDiskFault(error) !== undefined) storage.retry(write, onError);
    }
  };
  const jobs = createJobs(pullJobs({ access, modelsDir, elapsed, onError }), {
    table: openJobTable({ database, now }),
    hub,
    newId: randomUUID,
    stopping,
    elapsed,
    writeInTime,
    onError,
  });
  onClose(() => jobs.close());
  return { jobs, place: () => ({ modelsDir, ...hubOf(access) }) };
}

function hubOf(access: () => HubAccess): { readonly hub: string | undefined; readonly hasToken: boolean } {
  try {
    const { endpoint, hasToken } = access();
    return { hub: endpoint.href, hasToken };
  } catch {
    return { hub: undefined, hasToken: false };
  }
}
