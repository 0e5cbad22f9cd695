/** An invite's text as a QR code (ISO/IEC 18004): what a camera reads off this screen, or out of a picture. */
import QRCode, { type QRCodeSegment } from 'qrcode';

/** Level M stands a smear of 15 %; four light modules around it are what the standard asks for. */
const LOOK = { errorCorrectionLevel: 'M', margin: 4 } as const;
/** Pixels a module; a phone reads that from another screen. */
const PNG_SCALE = 8;

/** Two modules a character, dark ones as blocks: to be drawn in black on white. */
export async function qrCodeRows(text: string): Promise<readonly string[]> {
  return (await QRCode.toString(segments(text), { ...LOOK, type: 'utf8' })).split('\n');
}

export function qrCodePng(text: string): Promise<Uint8Array> {
  return QRCode.toBuffer(segments(text), { ...LOOK, type: 'png', scale: PNG_SCALE });
}

/** Upper case, digits and a colon take 5.5 bits a character in this mode, where bytes take 8. */
function segments(text: string): QRCodeSegment[] {
  return [{ data: text, mode: 'alphanumeric' }];
}
