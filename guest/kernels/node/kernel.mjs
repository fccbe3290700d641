// SPDX-License-Identifier: MIT
/**
 * Where the Node kernel starts. All else is CommonJS: the loader of ES modules reads each file
 * asynchronously, which costs a tenth of the kernel's whole start.
 */

import { createRequire } from 'node:module';

createRequire(import.meta.url)('./main.cjs');
