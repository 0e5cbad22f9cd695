// Which of the engine's packages this machine can use. node-llama-cpp has one for each platform, and on some others for
// graphics cards, which weigh twenty times as much. npm tells only platforms apart.
//
//   POSTERN_ENGINES=cuda,vulkan   those, whatever is found here; `all` for all of this platform, `cpu` for none of them
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What its packages call an operating system, where that is not what Node calls it. */
export const OS_NAMES = { darwin: 'mac', win32: 'win' };

/** Where a system keeps libraries that programs are not given the path of. */
const LIBRARY_FOLDERS = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib'];

/** @param {string} name such as `@node-llama-cpp/linux-x64-cuda` */
export function isUsableEngine(name, { platform, arch, wanted = process.env.POSTERN_ENGINES, has = existsSync }) {
  const base = `@node-llama-cpp/${OS_NAMES[platform] ?? platform}-${arch}`;
  if (name === base) return true;
  if (!name.startsWith(`${base}-`)) return false;
  const [kind] = name.slice(base.length + 1).split('-');
  if (kind === 'metal' || wanted === 'all') return true;
  if (wanted) return wanted.split(',').includes(kind);
  return kind === 'cuda' ? hasNvidiaDriver(platform, has) : hasVulkan(platform, has);
}

function hasNvidiaDriver(platform, has) {
  return platform === 'win32' ? has(join(systemFolder(), 'nvcuda.dll')) : has('/proc/driver/nvidia') || has('/dev/dxg');
}

/** The loader alone is on many machines without a graphics card. */
function hasVulkan(platform, has) {
  if (platform === 'win32') return has(join(systemFolder(), 'vulkan-1.dll'));
  return has('/dev/dri') && LIBRARY_FOLDERS.some((folder) => has(join(folder, 'libvulkan.so.1')));
}

function systemFolder() {
  return join(process.env.SystemRoot ?? 'C:\\Windows', 'System32');
}
