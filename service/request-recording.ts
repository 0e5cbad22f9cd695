/** Who looks on: the request log, and the figures for Prometheus. */
import type { RequestLogSettings } from '../gateway/request-log/settings.ts';
import { createMetrics, type Metrics, type MetricsSources } from '../gateway/metrics.ts';
import { createRecorder, type Recorder } from '../gateway/request-log/recorder.ts';
import { createRequestLog, type RequestLog } from '../gateway/request-log/request-log.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

/** Opened early, as what is answered last is still written down. */
export function openRequestLog(
  { settings, say, onClose }: Start<RequestLogSettings>,
  { database, storage }: Storage,
): RequestLog {
  const requestLog = createRequestLog({
    database,
    now: Date.now,
    keepDays: settings['log.days'],
    onFailure(message, error) {
      say(message);
      storage.note(error);
    },
  });
  onClose(() => requestLog.close());
  return requestLog;
}

interface Recording {
  readonly metrics: Metrics;
  readonly recorder: Recorder;
}

export function openRecording(
  settings: RequestLogSettings,
  { requestLog, ...sources }: MetricsSources & { readonly requestLog: RequestLog },
): Recording {
  const metrics = createMetrics(sources);
  const recorder = createRecorder({
    now: Date.now,
    elapsed: () => performance.now(),
    keepBodies: settings['log.bodies'],
    onEntry(entry, { isRoutine }) {
      // One each second, of the command line or a monitor, would bury what its owner looks for.
      if (!isRoutine) requestLog.write(entry);
      metrics.observe(entry);
    },
  });
  return { metrics, recorder };
}
