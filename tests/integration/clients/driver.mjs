// SPDX-License-Identifier: MIT
// Walks the main path with one of MCP's two TypeScript SDKs and prints what it saw as one object.
//
//   node driver.mjs '{"sdk": "v1"|"v2", "era": ..., "url": ..., "command": ..., "env": {...}}'
//
// With "url" over HTTP, else over stdio. v1 is of the legacy era alone; v2 negotiates.

const options = JSON.parse(process.argv[2]);
const CELL_SECONDS = 30;
const TIMEOUT = 21_000; // less than the cell takes: only progress keeps the call alive

/** What differs between the two SDKs: how a client is made, asked to answer, and calls a tool. */
const SDKS = {
  async v1() {
    const at = '@modelcontextprotocol/sdk';
    const { Client } = await import(`${at}/client/index.js`);
    const { StdioClientTransport } = await import(`${at}/client/stdio.js`);
    const { StreamableHTTPClientTransport } = await import(`${at}/client/streamableHttp.js`);
    const { ElicitRequestSchema } = await import(`${at}/types.js`);
    return {
      make: (info, settings) => new Client(info, settings),
      onElicit: (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer),
      call: (client, params, extra) => client.callTool(params, undefined, extra),
      StdioClientTransport,
      StreamableHTTPClientTransport,
    };
  },
  async v2() {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const mode = options.era === 'modern' ? 'auto' : 'legacy';
    return {
      make: (info, settings) => new Client(info, { ...settings, versionNegotiation: { mode } }),
      onElicit: (client, answer) => client.setRequestHandler('elicitation/create', answer),
      call: (client, params, extra) => client.callTool(params, extra),
      StdioClientTransport,
      StreamableHTTPClientTransport,
    };
  },
};

const sdk = await SDKS[options.sdk]();
const client = sdk.make(
  { name: 'driver', version: '1' },
  { capabilities: { elicitation: { form: {} } } },
);
const seen = { asked: [], progress: [] };

sdk.onElicit(client, (request) => {
  seen.asked.push(request.params.message);
  const names = Object.keys(request.params.requestedSchema.properties);
  return { action: 'accept', content: Object.fromEntries(names.map((name) => [name, 'Ada'])) };
});

const tool = async (name, args = {}, extra = {}) =>
  sdk.call(client, { name, arguments: args }, extra);
const cell = async (code, extra) =>
  (await tool('execute_code', { session_id: seen.session, code, timeout: 120 }, extra))
    .structuredContent;
const plain = (payload) => payload.result?.['text/plain'];
const failure = async (promise) => promise.then(() => null, (error) => ({
  name: error.name, code: error.code, message: error.message,
}));

await client.connect(options.url
  ? new sdk.StreamableHTTPClientTransport(new URL(options.url))
  : new sdk.StdioClientTransport({ command: options.command, args: ['mcp'], env: options.env }));

seen.server = client.getServerVersion();
seen.tools = (await client.listTools()).tools.map(({ name }) => name);
seen.session = (await tool('create_session', { language: 'node' })).structuredContent.session_id;
await cell('const kept = 40');
seen.kept = plain(await cell('kept + 2'));

const python = (await tool('create_session')).structuredContent.session_id;
const plot = await tool('execute_code', {
  session_id: python,
  code: 'import matplotlib.pyplot as plt; plt.plot([3, 1, 2]); plt.show()',
});
seen.blocks = plot.content.map(({ type, mimeType, data }) => ({
  type, mimeType, start: data?.slice(0, 8),
}));

const node = seen.session;
seen.session = python;
seen.input = plain(await cell("input('name? ')"));

seen.long = plain(await cell(`import time; time.sleep(${CELL_SECONDS}); 'done'`, {
  timeout: TIMEOUT,
  resetTimeoutOnProgress: true,
  onprogress: ({ progress }) => seen.progress.push(progress),
}));

const abort = new AbortController();
setTimeout(() => abort.abort('enough'), 1500);
seen.aborted = await failure(cell('import time; x = 7; time.sleep(300)', { signal: abort.signal }));
const start = performance.now();
seen.afterAbort = plain(await cell('x'));
seen.afterAbortMs = performance.now() - start;

await cell("open('f.csv', 'w').write('a,b\\n')");
const exported = await tool('export_files', { session_id: python, files: [{ source: 'f.csv' }] });
const link = exported.content.find(({ type }) => type === 'resource_link');
seen.listed = (await client.listResources()).resources.some(({ uri }) => uri === link.uri);
const [content] = (await client.readResource({ uri: link.uri })).contents;
seen.file = content.text ?? Buffer.from(content.blob, 'base64').toString();

seen.missing = await failure(client.readResource({ uri: `${link.uri}-not` }));
seen.refused = (await tool('execute_code', { session_id: '0123abcd', code: '1' })).isError;
for (const session of [node, python]) {
  await tool('stop_session', { session_id: session });
}
await client.close();
console.log(JSON.stringify(seen));
