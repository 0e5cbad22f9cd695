/** A certificate for an address, that nobody trusts but who is told to. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface TestCertificate {
  /** PEM files. */
  readonly cert: string;
  readonly key: string;
}

export async function makeCertificate(folder: string, address: string): Promise<TestCertificate> {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key, '-out', cert];
  const says = ['-days', '2', '-subj', '/CN=postern-test', '-addext', `subjectAltName=IP:${address}`];
  await promisify(execFile)('openssl', ['req', '-x509', ...made, ...says]);
  return { cert, key };
}
