/**
 * The gateways that this machine is a device of. `paired.json` has what is not secret of them; the keys are in the same
 * store as a gateway's own identity, which this machine need not have.
 *
 *     { "version": 1, "store": "keyring" | "vault",
 *       "gateways": [{ "gatewayId", "gatewayName", "deviceId", "pairedAt" }],
 *       "pending":  [{ "entry", "expiresAt" }] }
 *
 * What is in the store has its row here: written before a pending key, since a store can't be asked what is in it, and
 * after a device's, since a row says that it is there.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { decodeUtf8, utf8ToBytes } from '../channel/bytes.ts';
import { deviceEntry, findPairedDevice, type PairedDevice, type SecretStorage } from '../clients/sdk/index.ts';
import { quoted } from '../core/printable.ts';
import { chooseStore, type StoreOptions } from '../identity/node/choose-store.ts';
import { readIdentityRecord, type IdentityRecord } from '../identity/node/identity-record.ts';
import { IdentityError, type SecretStore } from '../identity/node/secret-store.ts';
import { CommandError, type CommandContext } from './command.ts';
import { existingIdentityOptions, identityOptions } from '../service/identity-options.ts';
import { parseBoundedJson } from '../core/json/json-reader.ts';

const pairedGateway = z.strictObject({
  gatewayId: z.string(),
  gatewayName: z.string(),
  deviceId: z.string(),
  pairedAt: z.iso.datetime(),
});
const fileSchema = z.strictObject({
  version: z.literal(1),
  store: z.enum(['keyring', 'vault']),
  gateways: z.array(pairedGateway),
  pending: z.array(z.strictObject({ entry: z.string(), expiresAt: z.iso.datetime() })),
});

export type PairedGateway = Readonly<z.output<typeof pairedGateway>>;
type PairedFile = Readonly<z.output<typeof fileSchema>>;

/** In the order in which they were paired. @throws {CommandError} for a file that can't be read */
export async function listPairedGateways(home: string): Promise<readonly PairedGateway[]> {
  return (await readPairedFile(home))?.gateways ?? [];
}

/** @throws {CommandError} where there is none, or where this machine does not have its keys; {IdentityError} */
export async function loadPairedDevice(gateway: PairedGateway, context: CommandContext): Promise<PairedDevice> {
  const { secrets } = await openSecrets(context);
  const text = await readText(secrets, deviceEntry(gateway.gatewayId));
  const device = text === undefined ? undefined : findPairedDevice(text);
  if (device !== undefined) return device;
  throw new CommandError(
    `the keys for ${quoted(gateway.gatewayName)} are gone from where they were kept. ${secrets.description} Forget it ` +
      `("postern gateways forget ${gateway.gatewayId.replaceAll(' ', '')}") and pair this machine again.`,
  );
}

/** Puts a device's record in the place of its older one; not where that is no longer there. @throws {IdentityError} */
export async function keepMovedDevice(device: PairedDevice, context: CommandContext): Promise<void> {
  const { secrets } = await openSecrets(context);
  const entry = deviceEntry(device.gatewayId);
  const text = await readText(secrets, entry);
  if (text === undefined || findPairedDevice(text)?.deviceKey !== device.deviceKey) return;
  await secrets.set(entry, utf8ToBytes(JSON.stringify(device)));
}

/**
 * Takes the keys out of the store, and then the row away. Where the store itself is gone, so are they.
 * @throws {IdentityError} where the store does not open
 */
export async function forgetGateway({ gatewayId }: PairedGateway, context: CommandContext): Promise<void> {
  const entry = deviceEntry(gatewayId);
  const options = await existingIdentityOptions(context);
  try {
    await (await openSecrets(context)).secrets.delete(entry);
  } catch (error) {
    if (!(error instanceof IdentityError) || error.code !== 'missing') throw error;
  }
  await changePairedFile(options, (file) => ({
    ...file,
    gateways: file.gateways.filter((gateway) => gateway.gatewayId !== gatewayId),
  }));
}

interface PairingStorage {
  /** Says to the owner where it is. */
  readonly description: string;
  readonly storage: SecretStorage;
}

/**
 * Where one pairing keeps its keys. A key of an invite that is over goes, however that pairing ended.
 * @param expiresAtMs of the invite
 * @throws {IdentityError}
 */
export async function openPairingStorage(context: CommandContext, expiresAtMs: number): Promise<PairingStorage> {
  const { secrets, options } = await openSecrets(context);
  await changePairedFile(options, (file) => file, secrets);
  const storage = pairingStorage({ secrets, options, expiresAtMs });
  for (const { entry, expiresAt } of (await readPairedFile(options.home))?.pending ?? []) {
    if (Date.parse(expiresAt) <= Date.now()) await storage.erase(entry);
  }
  return { description: secrets.description, storage };
}

interface PairingStorageOptions {
  readonly secrets: SecretStore;
  readonly options: StoreOptions;
  readonly expiresAtMs: number;
}

function pairingStorage({ secrets, options, expiresAtMs }: PairingStorageOptions): SecretStorage {
  const withoutPending = (file: PairedFile, entry: string): PairedFile => ({
    ...file,
    pending: file.pending.filter((pending) => pending.entry !== entry),
  });
  const change = (next: (file: PairedFile) => PairedFile): Promise<void> => changePairedFile(options, next, secrets);
  return {
    read: (name) => readText(secrets, name),
    async write(name, text) {
      const device = findPairedDevice(text);
      if (device === undefined) {
        const pending = { entry: name, expiresAt: new Date(expiresAtMs).toISOString() };
        await change((file) => ({ ...file, pending: [...withoutPending(file, name).pending, pending] }));
        await secrets.set(name, utf8ToBytes(text));
      } else {
        await secrets.set(name, utf8ToBytes(text));
        await change((file) => withGateway(file, device));
      }
    },
    async erase(name) {
      await secrets.delete(name);
      await change((file) => withoutPending(file, name));
    },
  };
}

/** One row for each gateway: who pairs again takes the place of what was there. */
function withGateway(file: PairedFile, { gatewayId, gatewayName, deviceId }: PairedDevice): PairedFile {
  const others = file.gateways.filter((gateway) => gateway.gatewayId !== gatewayId);
  const pairedAt = new Date().toISOString();
  return { ...file, gateways: [...others, { gatewayId, gatewayName, deviceId, pairedAt }] };
}

async function readText(secrets: SecretStore, name: string): Promise<string | undefined> {
  const bytes = await secrets.get(name);
  return bytes === undefined ? undefined : decodeUtf8(bytes);
}

interface OpenSecrets {
  readonly secrets: SecretStore;
  readonly options: StoreOptions;
}

/** The store that keys are in already; else the one that this folder's identity is in, or would be put in. */
async function openSecrets(context: CommandContext): Promise<OpenSecrets> {
  const file = await readPairedFile(context.home);
  const isInUse = file !== undefined && file.gateways.length + file.pending.length > 0;
  const options = isInUse ? await existingIdentityOptions(context) : await identityOptions(context);
  const record: IdentityRecord | undefined = isInUse
    ? { version: 1, store: file.store, secrets: ['paired'] }
    : await readIdentityRecord(context.home);
  return { secrets: await chooseStore(record, options), options };
}

function pairedPath(home: string): string {
  return join(home, 'paired.json');
}

async function readPairedFile(home: string): Promise<PairedFile | undefined> {
  try {
    return fileSchema.parse(parseBoundedJson(await readFile(pairedPath(home), 'utf8')));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CommandError(
      `${pairedPath(home)} is damaged. Put back a copy of it; or move it away and pair this machine again.`,
    );
  }
}

/** @param secrets where the keys are, for a file that is yet to be made */
async function changePairedFile(
  { home, writeFile, exclusively }: StoreOptions,
  next: (file: PairedFile) => PairedFile,
  secrets?: SecretStore,
): Promise<void> {
  await exclusively(async () => {
    const found = await readPairedFile(home);
    const isInUse = found !== undefined && found.gateways.length + found.pending.length > 0;
    const store = isInUse ? found.store : (secrets?.kind ?? found?.store);
    if (store === undefined) return;
    if (secrets !== undefined && secrets.kind !== store) throw movedMeanwhile();
    const file = next({ version: 1, gateways: [], pending: [], ...found, store });
    await writeFile(pairedPath(home), `${JSON.stringify(file, null, 2)}\n`, 0o600);
  });
}

const movedMeanwhile = () =>
  new IdentityError('mismatch', 'another program has chosen another place for keys meanwhile. Try again.');
