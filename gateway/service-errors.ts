/** The status of each failure that `core` reports. */
import type { ServiceErrorCode } from '../core/errors.ts';

export const serviceErrors = {
  invalid_request: 400,
  prompt_too_long: 400,
  unsupported: 400,
  model_not_found: 404,
  engine_failed: 500,
  insufficient_resources: 503,
  overloaded: 503,
  shutting_down: 503,
} as const satisfies Readonly<Record<ServiceErrorCode, number>>;
