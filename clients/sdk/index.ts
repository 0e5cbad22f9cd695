/** The SDK's entry: pair a device with its gateway, and use what it serves from anywhere that leads there. */
export type { InviteCode, InviteRelay } from '../../identity/invite-code.ts';
export type { DeviceDescription } from '../../identity/pairing.ts';
export { connect } from './client.ts';
export type { ConnectOptions, PosternClient } from './client.ts';
export { findPairedDevice } from './device.ts';
export type { PairedDevice } from './device.ts';
export { PosternError } from './errors.ts';
export type { PosternErrorCode } from './errors.ts';
export { describeInvite } from './invite.ts';
export type { InviteDescription } from './invite.ts';
export { pair } from './pair.ts';
export type { PairOptions } from './pair.ts';
export { describeGateway, pairByCode } from './pair-by-code.ts';
export type { NearbyGateway, PairByCodeOptions } from './pair-by-code.ts';
export type { Fetch, Platform, SetTimer } from './platform.ts';
export { deviceEntry, forgetDevice, loadDevice } from './secret-storage.ts';
export type { SecretStorage } from './secret-storage.ts';
export type { Operation, Transport } from './transport.ts';
