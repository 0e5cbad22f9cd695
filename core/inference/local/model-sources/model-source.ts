/** A place where models may be: our own folder, or that of another app. Looked at, never written to. */
import type { ModelOrigin } from '../../catalog.ts';

export interface FoundModel {
  /** What clients call it. */
  readonly id: string;
  /** What they call it where another model has that name already. */
  readonly longId: string;
  readonly path: string;
  /** Bytes on disk, all parts of a split file together. */
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** The same for two paths to one file. */
  readonly fileKey: string;
  /** `sha256:<hex>`, where whoever downloaded the file wrote it down. */
  readonly digest?: string;
}

export interface ModelSource {
  readonly origin: ModelOrigin;
  /** Reads the disk. What can't be read, or makes no sense, is not there. */
  find(): Promise<readonly FoundModel[]>;
}
