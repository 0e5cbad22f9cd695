/** What some checks need from the system. Where it is missing they say so and are skipped; in CI that is a failure. */
import { spawnSync } from 'node:child_process';

export interface Requirement {
  readonly isMet: boolean;
  readonly remedy: string;
}

/** @returns whether to run; to be passed to `describe.runIf` */
export function has({ isMet, remedy }: Requirement): boolean {
  if (isMet) return true;
  if (process.env['CI']) throw new Error(`CI lacks what this check needs. ${remedy}`);
  console.warn(`skipped: ${remedy}`);
  return false;
}

/** Two machines on one: network namespaces, for which the program must be root. */
export const networkNamespaces: Requirement = {
  isMet: process.platform === 'linux' && process.getuid?.() === 0 && spawnSync('ip', ['netns', 'list']).status === 0,
  remedy: 'Network namespaces need Linux, root, and the Debian package iproute2.',
};

/** A terminal for a program, with a person in front of it. */
export const terminals: Requirement = {
  isMet: process.platform === 'linux' && spawnSync('script', ['--version']).status === 0,
  remedy: "A terminal of one's own needs Linux and util-linux' script (Debian: bsdutils).",
};

/** What systemd makes of a unit. */
export const systemdAnalyze: Requirement = {
  isMet: spawnSync('which', ['systemd-analyze']).status === 0,
  remedy: 'A unit is looked at by systemd-analyze, of the Debian package systemd.',
};

/** The shells that the command line is completed in. */
export const shells: Requirement = {
  isMet: ['bash', 'zsh', 'fish'].every((program) => spawnSync('which', [program]).status === 0),
  remedy: 'Completion is tried in the Debian packages bash, zsh and fish.',
};

/** A credential store as a Linux desktop has it, in a session of its own. */
export const gnomeKeyring: Requirement = {
  isMet: ['dbus-run-session', 'gnome-keyring-daemon', 'secret-tool'].every(
    (program) => spawnSync('which', [program]).status === 0,
  ),
  remedy: 'A credential store needs the Debian packages gnome-keyring, dbus-x11 and libsecret-tools.',
};

/** What a process has in its memory. */
export const coreDumps: Requirement = {
  isMet: spawnSync('which', ['gcore']).status === 0,
  remedy: "A process's memory is written down by gcore, of the Debian package gdb.",
};

/** Certificates. */
export const openssl: Requirement = {
  isMet: spawnSync('which', ['openssl']).status === 0,
  remedy: 'A certificate is made by the Debian package openssl.',
};

/** Somebody who listens on the network. */
export const packetCapture: Requirement = {
  isMet: spawnSync('which', ['tcpdump']).status === 0,
  remedy: 'Listening on a network needs the Debian package tcpdump.',
};

/** Programs of other users, and what stands in front of a service. */
export const otherUsersAndProxies: Requirement = {
  isMet:
    process.platform === 'linux' &&
    process.getuid?.() === 0 &&
    ['nginx', 'haproxy', 'socat', 'curl', 'setpriv'].every((program) => spawnSync('which', [program]).status === 0),
  remedy: 'Other users and proxies need Linux, root, and the Debian packages nginx-light, haproxy, socat and curl.',
};

/** A disk of a test's own, as small as it likes, for which the program must be root. */
export const tinyDisks: Requirement = {
  isMet: process.platform === 'linux' && process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0,
  remedy: 'A disk of its own needs Linux, root, and the right to mount.',
};
