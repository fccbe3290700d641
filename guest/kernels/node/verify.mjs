// SPDX-License-Identifier: MIT
// Exits 0 if every NAME or NAME@VERSION of the arguments has a package in
// /workspace/node_modules, of that version if the version is a plain one.
import { readFileSync } from 'node:fs';

let failed = false;
for (const argument of process.argv.slice(2)) {
  const at = argument.indexOf('@', 1);
  const name = at > 0 ? argument.slice(0, at) : argument;
  const version = at > 0 ? argument.slice(at + 1) : '';
  try {
    const found = JSON.parse(readFileSync(`/workspace/node_modules/${name}/package.json`, 'utf8')).version;
    if (/^\d+\.\d+\.\d+$/.test(version) && found !== version)
      throw new Error(`it is ${found}, not ${version}`);
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
