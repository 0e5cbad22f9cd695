// Loaded into the service before anything else (`node --import`): its clocks are off by what a file says, which may change
// at any time. {"wallMs": by how much the clock is off, "monotonicMs": how much more time has passed}
import { readFileSync } from 'node:fs';

const { now } = Date;
const elapsed = performance.now.bind(performance);
const offsets = () => JSON.parse(readFileSync(process.env.CLOCK_FILE, 'utf8'));
Date.now = () => now() + offsets().wallMs;
performance.now = () => elapsed() + offsets().monotonicMs;
