/**
 * The SDK's entry: pair a device with its gateway, and use what it serves from anywhere that leads there. Pairing by a
 * code has an entry of its own, `pair-by-code.ts`: it needs another curve, which a page that does without need not load.
 * So has reaching home through a relay, `relay.ts`.
 */
export type { InviteCode, InviteRelay } from '../../identity/invite-code.ts';
export type { DeviceDescription } from '../../identity/pairing.ts';
export { connect } from './client.ts';
export type { ConnectOptions, PosternClient } from './client.ts';
export { findPairedDevice } from './device.ts';
export type { PairedDevice } from './device.ts';
export { PosternError, TransportError } from './errors.ts';
export type { PathHint, PosternErrorCode } from './errors.ts';
export { describeInvite } from './invite.ts';
export type { InviteDescription } from './invite.ts';
export { pair } from './pair.ts';
export type { PairOptions } from './pair.ts';
export type { SetTimer } from '../../relay/wire/heartbeat.ts';
export type { Fetch, Platform } from './platform.ts';
export { deviceEntry, forgetDevice, loadDevice } from './secret-storage.ts';
export type { SecretStorage } from './secret-storage.ts';
export type { Operation, PathDescription, Transport } from './transport.ts';
