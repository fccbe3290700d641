// SPDX-License-Identifier: MIT
/**
 * MIME maps: what `display(x)` and the value of a cell become. Binary kinds end as base64 text
 * without line breaks, text kinds as text, JSON kinds as values.
 */

'use strict';

const { Buffer } = require('node:buffer');
const { inspect, types } = require('node:util');
const { jsonEncode } = require('./link.cjs');

/** An object with a method of this name says itself how it is shown, by returning a MIME map. */
const DISPLAY_SYMBOL = Symbol.for('Jupyter.display');

/** A frame has at most 48 MiB; the rest is for the token, metadata and a note. */
const BUNDLE_MAX = (48 << 20) - (64 << 10);

const MIME_GRAMMAR = /^[a-z]+\/[a-z0-9][a-z0-9.+_-]*$/i;
const BINARY_KIND = /^(?:image\/(?!svg\+xml)|audio\/|video\/|application\/(?:pdf|octet-stream)$)/i;
const JSON_KIND = /^application\/(?:[^/]+\+)?json$/i;

/** First bytes of the formats that a bare Buffer is recognised by. */
const MAGIC = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['audio/wav', /^RIFF[^]{4}WAVE/],
  ['audio/mpeg', /^(?:ID3|\xff[\xfb\xf3\xf2])/],
  ['audio/ogg', /^OggS/],
  ['video/mp4', /^[^]{4}ftyp/],
  ['application/pdf', /^%PDF-/],
];

/** Keys of an object that display() knows, in order: [key, MIME type or its default]. */
const KEYS = [
  ['html', 'text/html'],
  ['image', 'image/png', true],
  ['audio', 'audio/wav', true],
  ['svg', 'image/svg+xml'],
];

function bytesOf(data) {
  if (types.isAnyArrayBuffer(data)) {
    return Buffer.from(data);
  }
  return types.isArrayBufferView(data)
    ? Buffer.from(data.buffer, data.byteOffset, data.byteLength)
    : null;
}

/** A value in the form its kind has in a MIME map. */
function dataFor(mime, data) {
  if (JSON_KIND.test(mime)) {
    return data;
  }
  const bytes = bytesOf(data);
  if (BINARY_KIND.test(mime)) {
    const text = bytes ? bytes.toString('base64') : String(data);
    return text.replace(/^data:[^,]*,/, '').replace(/\s+/g, '');
  }
  return bytes ? bytes.toString('utf8') : String(data);
}

/** Checks a MIME map given by user code and brings its values into form. */
function bundleCheck(map) {
  if (map === null || typeof map !== 'object') {
    throw new TypeError('display: a MIME map is an object such as {"text/html": "<b>x</b>"}');
  }
  const entries = Object.entries(map);
  for (const [mime] of entries) {
    if (!MIME_GRAMMAR.test(mime)) {
      throw new TypeError(`display: ${inspect(mime)} is not a MIME type`);
    }
  }
  return Object.fromEntries(entries.map(([mime, data]) => [mime, dataFor(mime, data)]));
}

function isMimeMap(value) {
  const keys = Object.keys(value);
  return keys.length > 0 && keys.every((key) => key.includes('/') && MIME_GRAMMAR.test(key));
}

/** The MIME type that a data: URL or the first bytes of a buffer tell, else null. */
function sniff(data) {
  if (typeof data === 'string') {
    return /^data:([^;,]+)/.exec(data)?.[1] ?? null;
  }
  const start = bytesOf(data)?.toString('latin1', 0, 16);
  return start === undefined ? null : (MAGIC.find(([, form]) => form.test(start))?.[0] ?? null);
}

/** util.inspect as the values of cells and console.log use it. */
function inspectText(value) {
  return inspect(value, { depth: 4, ...(typeof value === 'string' && { maxStringLength: null }) });
}

/** What an object's own display method says, else null. */
function ownBundle(value) {
  const method = value !== null && typeof value === 'object' ? value[DISPLAY_SYMBOL] : undefined;
  return typeof method === 'function' ? bundleCheck(method.call(value)) : null;
}

/** The MIME map of a value given to display(). */
function displayBundle(value) {
  if (typeof value === 'string') {
    return { 'text/html': value };
  }
  const own = ownBundle(value);
  if (own || value === null || typeof value !== 'object') {
    return own ?? { 'text/plain': inspectText(value) };
  }
  const magic = sniff(value);
  if (magic) {
    return bundleCheck({ [magic]: value });
  }
  for (const [key, mime, typed] of KEYS) {
    if (value[key] !== undefined) {
      const kind = typed ? (value.mimeType ?? sniff(value[key]) ?? mime) : mime;
      return bundleCheck({ [kind]: value[key] });
    }
  }
  if (typeof value.type === 'string' && value.type.includes('/') && value.data !== undefined) {
    return bundleCheck({ [value.type]: value.data });
  }
  return isMimeMap(value) ? bundleCheck(value) : { 'text/plain': inspectText(value) };
}

/** The MIME map of a cell's value. */
function resultBundle(value) {
  return { 'text/plain': inspectText(value), ...ownBundle(value) };
}

/**
 * The body of a K_DISPLAY or K_RESULT frame. A value that does not fit into a frame with those
 * before it is replaced by a note in text/plain.
 */
function bundleEncode(bundle, metadata = {}) {
  const body = jsonEncode({ data: bundle, metadata });
  if (body.length <= BUNDLE_MAX) {
    return body;
  }
  const kept = {};
  const notes = [];
  let room = BUNDLE_MAX - 1024 - jsonEncode(metadata).length;
  for (const [mime, data] of Object.entries(bundle)) {
    const size = jsonEncode({ [mime]: data }).length;
    if (size <= room) {
      kept[mime] = data;
      room -= size;
    } else {
      notes.push(`[${mime} of ${size} bytes is left out: the limit is ${BUNDLE_MAX} bytes]`);
    }
  }
  kept['text/plain'] = [kept['text/plain'], ...notes].filter(Boolean).join('\n');
  return room > 0 ? jsonEncode({ data: kept, metadata }) : bundleEncode({ 'text/plain': notes[0] });
}

/**
 * Makes the global `display`. `emit(body)` sends one frame. Besides display(value, …) there is
 * display.mime(map, metadata), and for one kind each display.html(x), .markdown, .svg and .json.
 */
function displayMake(emit) {
  const display = (...values) => {
    for (const value of values) {
      emit(bundleEncode(displayBundle(value)));
    }
  };
  display.mime = (map, metadata = {}) => emit(bundleEncode(bundleCheck(map), metadata));
  const kinds = { html: 'text/html', markdown: 'text/markdown', svg: 'image/svg+xml' };
  for (const [name, mime] of Object.entries({ ...kinds, json: 'application/json' })) {
    display[name] = (data) => display.mime({ [mime]: data });
  }
  return display;
}

module.exports = {
  inspectText,
  displayBundle,
  resultBundle,
  bundleEncode,
  displayMake,
};
