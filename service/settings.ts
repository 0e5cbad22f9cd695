/** The settings of all rooms, in the order in which they are shown. */
import type { SettingDeclarations, SettingsOf } from '../core/config/setting.ts';
import { createSettingsTable, type ResolvedSettings, type SettingSources } from '../core/config/settings.ts';
import { inferenceSettings, modelSettings, samplingSettings } from '../core/inference/local/settings.ts';
import { mergeDeclarations } from '../core/merge-declarations.ts';
import { requestLogSettings } from '../gateway/request-log/settings.ts';
import { channelSettings } from '../gateway/sealed/settings.ts';
import { accessSettings, pairingSettings, serverSettings, wireSettings } from '../gateway/settings.ts';
import { identitySettings } from '../identity/node/settings.ts';
import { relaySettings } from './relay-settings.ts';
import type { ServiceContext } from './start.ts';

const declarations = mergeDeclarations(
  serverSettings,
  wireSettings,
  modelSettings,
  inferenceSettings,
  channelSettings,
  accessSettings,
  pairingSettings,
  relaySettings,
  identitySettings,
  samplingSettings,
  requestLogSettings,
) satisfies SettingDeclarations;

export type Settings = SettingsOf<typeof declarations>;
export type SettingName = keyof Settings;

export const settingNames: readonly string[] = Object.keys(declarations);

export const {
  isName: isSettingName,
  isLive: isLiveSetting,
  parseText: parseSettingText,
  readFile: readSettingsFile,
  write: writeSetting,
  resolve: resolveSettings,
} = createSettingsTable(declarations);

/**
 * As the file, the environment and the flags of this moment say.
 * @throws {SettingsError}
 */
export async function readSettings(
  { home, environment }: Pick<ServiceContext, 'home' | 'environment'>,
  flags: SettingSources<SettingName>['flags'] = {},
): Promise<ResolvedSettings<typeof declarations>> {
  return resolveSettings({ flags, environment, file: await readSettingsFile(home) });
}
