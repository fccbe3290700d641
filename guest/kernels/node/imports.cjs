// SPDX-License-Identifier: MIT
/**
 * ES module syntax in cells. V8 runs a cell as a script, where `import` declarations and
 * `import.meta` do not parse and `import()` has no loader, so these three are rewritten to calls of
 * two hidden globals. Lines stay where they were. What acorn cannot parse goes to V8 unchanged, and
 * V8 says what is wrong with it.
 *
 * A module is loaded once per kernel, as in any Node program. To load a changed file again:
 *   import:   give it another query, `await import('./m.mjs?2')`;
 *   require:  `delete require.cache[require.resolve('./m.cjs')]` first.
 * Bindings of a rewritten `import` are copies: an export that its module changes later stays as it
 * was. Not reached: `import()` inside eval() and new Function().
 */

'use strict';

const Module = require('node:module');
const { dirname } = require('node:path');
const { pathToFileURL } = require('node:url');

const IMPORT_NAME = '__cell_import__';
const META_NAME = '__cell_meta__';

function textOf(code, node) {
  return code.slice(node.start, node.end);
}

/** `import a, {b as c} from "x"` as a destructuring of the loaded module. */
function declarationRewrite(code, node) {
  const options = node.attributes?.length
    ? `{with:{${node.attributes.map((each) => textOf(code, each)).join()}}}`
    : 'undefined';
  const pairs = [];
  let namespace = null;
  for (const { type, local, imported } of node.specifiers) {
    if (type === 'ImportNamespaceSpecifier') {
      namespace = local.name;
    } else {
      const isDefault = type === 'ImportDefaultSpecifier';
      const name = isDefault ? 'default' : (imported.name ?? imported.value);
      pairs.push([JSON.stringify(name), local.name]);
    }
  }
  const names = pairs.map(([name]) => name);
  const call = `await ${IMPORT_NAME}(${node.source.raw},${options},[${names}])`;
  const pattern = `{${pairs.map((pair) => pair.join(':'))}}`;
  const lines = '\n'.repeat(textOf(code, node).split('\n').length - 1);
  if (namespace) {
    return `const ${namespace}=${call}${pairs.length ? `,${pattern}=${namespace}` : ''};${lines}`;
  }
  return `${pairs.length ? `const ${pattern}=` : 'void '}${call};${lines}`;
}

/** Every edit of a parsed program as [start, end, text]. Trees are deep, so no recursion. */
function editsFind(code, program) {
  const edits = [];
  const stack = [program];
  while (stack.length > 0) {
    const node = stack.pop();
    if (node.type === 'ImportDeclaration') {
      if (program.body.includes(node)) {
        edits.push([node.start, node.end, declarationRewrite(code, node)]);
      }
      continue;
    }
    if (node.type === 'ImportExpression') {
      edits.push([node.start, node.start + 'import'.length, IMPORT_NAME]);
    } else if (node.type === 'MetaProperty' && node.meta.name === 'import') {
      edits.push([node.start, node.end, META_NAME]);
    }
    for (const child of Object.values(node).flat()) {
      if (typeof child?.type === 'string') {
        stack.push(child);
      }
    }
  }
  return edits.sort(([a], [b]) => a - b);
}

/** The code as V8 can run it. Cells without the word cost one search. */
function importsRewrite(code) {
  if (!/\bimport\b/.test(code)) {
    return code;
  }
  const { parse } = require('acorn');
  let program;
  try {
    program = parse(code, {
      ecmaVersion: 'latest',
      sourceType: 'script',
      allowImportExportEverywhere: true,
      allowAwaitOutsideFunction: true,
    });
  } catch {
    return code;
  }
  let at = 0;
  let text = '';
  for (const [start, end, replacement] of editsFind(code, program)) {
    text += code.slice(at, start) + replacement;
    at = end;
  }
  return text + code.slice(at);
}

/**
 * The two functions behind the rewritten code. `filename` is a path in the work directory that need
 * not exist: modules are found as if that file imported them.
 */
function importsMake(filename, cellRequire) {
  const loader = new Module(filename);
  loader._compile('exports.load = (specifier, options) => import(specifier, options);', filename);
  const { load } = loader.exports;
  const url = pathToFileURL(filename).href;

  async function cellImport(specifier, options, names = []) {
    const module = await load(specifier, options);
    const missing = names.find((name) => !(name in module));
    if (missing !== undefined) {
      throw new SyntaxError(`the module '${specifier}' has no export named '${missing}'`);
    }
    return module;
  }

  const meta = {
    dirname: dirname(filename),
    filename,
    url,
    main: false,
    resolve(specifier) {
      if (/^(?:\.{0,2}\/|[a-z]+:)/i.test(specifier)) {
        return new URL(specifier, url).href;
      }
      const path = cellRequire.resolve(specifier);
      return path.startsWith('/') ? pathToFileURL(path).href : `node:${path.replace('node:', '')}`;
    },
  };
  return { cellImport, meta };
}

module.exports = {
  IMPORT_NAME,
  META_NAME,
  importsRewrite,
  importsMake,
};
