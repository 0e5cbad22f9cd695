// Loaded into the service before anything else (`node --import`): counts its writes below SVC_HOME and SVC_MODELS_DIR and
// makes one of them fail, as a disk would. No part of the program knows of it.
//
//   FAIL_WRITE=n         the n-th write fails, counted from 1; 0 only counts
//   FAIL_WRITE_LOG=path  one line for each write: its number, what it was, and "failed" where it was made to
import fs from 'node:fs';
import promises from 'node:fs/promises';
import { createRequire, syncBuiltinESMExports } from 'node:module';

// A model's process is not the service.
const isService = process.argv[1]?.endsWith('bin.js') ?? false;
const folders = isService ? [process.env.SVC_HOME, process.env.SVC_MODELS_DIR ?? process.env.SVC_HOME] : [];
const folderOf = (path) => folders.find((folder) => typeof path === 'string' && path.startsWith(`${folder}/`));
const failing = Number(process.env.FAIL_WRITE ?? 0);
const report = fs.openSync(process.env.FAIL_WRITE_LOG, 'a');
const writeSync = fs.writeSync;
let count = 0;

/** @param makeError what the disk would say */
function write(what, makeError) {
  count += 1;
  const isFailing = count === failing;
  writeSync(report, `${count} ${what}${isFailing ? ' failed' : ''}\n`);
  if (isFailing) throw makeError();
}

const Sqlite = createRequire(new URL('../../package.json', import.meta.url))('better-sqlite3');
const isReading =
  /^\s*(SELECT|EXPLAIN|BEGIN|ROLLBACK|SAVEPOINT|RELEASE|WITH[\s\S]*\bSELECT\b(?![\s\S]*\b(INSERT|UPDATE|DELETE)\b))/i;
const sqliteErrors = [
  ['SQLITE_FULL', 'database or disk is full'],
  ['SQLITE_IOERR_WRITE', 'disk I/O error'],
];
const sqliteError = () => {
  const [code, message] = sqliteErrors[failing % sqliteErrors.length];
  return new Sqlite.SqliteError(message, code);
};
// The others are empty, and only locked.
const isOfHome = ({ name }) => folderOf(name) !== undefined && /(^|\/)state\.db|\.part\.state$/.test(name);
const firstWords = (sql) => sql.trim().split(/\s+/).slice(0, 4).join(' ');

const probe = new Sqlite(':memory:');
const statement = Object.getPrototypeOf(probe.prepare('SELECT 1'));
probe.close();
for (const method of ['run', 'get', 'all']) {
  const original = statement[method];
  statement[method] = function (...parameters) {
    const isWrite = isOfHome(this.database) && (!this.readonly || /^\s*COMMIT/i.test(this.source));
    if (isWrite && !isReading.test(this.source)) write(`sqlite ${firstWords(this.source)}`, sqliteError);
    return original.apply(this, parameters);
  };
}
for (const method of ['exec', 'pragma']) {
  const original = Sqlite.prototype[method];
  Sqlite.prototype[method] = function (sql, ...rest) {
    const isWrite = isOfHome(this) && (method === 'exec' || /^(journal_mode|wal_checkpoint|user_version =)/.test(sql));
    if (isWrite && !isReading.test(sql)) write(`sqlite ${method} ${firstWords(sql)}`, sqliteError);
    return original.call(this, sql, ...rest);
  };
}

const diskErrors = [
  ['ENOSPC', 'no space left on device'],
  ['EIO', 'i/o error'],
];
function diskError(syscall, path) {
  const [code, message] = diskErrors[failing % diskErrors.length];
  return () => Object.assign(new Error(`${code}: ${message}, ${syscall}`), { code, syscall, ...(path && { path }) });
}

const isBelow = (path) => folderOf(path) !== undefined;
const tail = (path) => path.slice(folderOf(path).length + 1).replace(/\.[0-9a-f]{12}\.tmp$/, '.tmp');
for (const name of ['rename', 'mkdir', 'chmod', 'writeFile', 'appendFile', 'copyFile']) {
  const original = promises[name];
  promises[name] = async (path, ...rest) => {
    if (isBelow(path)) write(`${name} ${tail(path)}`, diskError(name, path));
    return original(path, ...rest);
  };
}
const { open } = promises;
promises.open = async (path, flags, ...rest) => {
  if (!isBelow(path) || flags === 'r' || flags === undefined) return open(path, flags, ...rest);
  write(`open ${tail(path)}`, diskError('open', path));
  const file = await open(path, flags, ...rest);
  for (const name of ['writeFile', 'write', 'sync', 'datasync', 'truncate']) {
    const original = file[name].bind(file);
    file[name] = async (...parameters) => {
      // As the system says it of a descriptor: without a path.
      write(`${name} ${tail(path)}`, diskError(name));
      return original(...parameters);
    };
  }
  return file;
};
syncBuiltinESMExports();
