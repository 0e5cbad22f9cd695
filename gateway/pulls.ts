/** Fetching models, as routes see it. */
import type { PullJobs } from '../core/download/pull-job.ts';
import { ServiceError } from '../core/errors.ts';

export interface Pulls {
  readonly jobs: Pick<PullJobs, 'join' | 'list' | 'release'>;
  /** Where models are put, and where they come from. */
  place(): PullPlace;
}

export interface PullPlace {
  readonly modelsDir: string;
  /** Undefined where the environment names none that can be used. */
  readonly hub: string | undefined;
  readonly hasToken: boolean;
}

export function tooManyPulls(): ServiceError {
  return new ServiceError('overloaded', 'Too many models are being fetched. Try again when one of them is there.');
}
