// SPDX-License-Identifier: MIT
/**
 * Where the Node kernel starts. All else is CommonJS: the loader of ES modules reads each file
 * asynchronously, which costs a tenth of the kernel's whole start.
 *
 * The command line is in the file argv. --no-force-async-hooks-checks is needed because to
 * terminate running JavaScript leaves Node's stack of async contexts unbalanced; the checks would
 * abort.
 */

import { createRequire } from 'node:module';

createRequire(import.meta.url)('./main.cjs');
