// SPDX-License-Identifier: MIT
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Where a development server finds the API; `sandbox-agent api dev` listens there. */
const api = process.env.API_BASE_URL ?? "http://127.0.0.1:8000";

/** What the page asks the API for; everything else is the page's own. */
const routes =
  /^\/(assistants|threads|runs|store|settings|sessions|models|info|ok|health|metrics|docs|openapi\.json|mcp)(\/|\?|$)/;

/** Older formats of a font beside its WOFF2, which every browser takes that runs ES2022. */
const olderFonts = /,\s*url\([^)]*\)\s*format\("(?:woff|truetype)"\)/g;

/** Leaves them out, so that they are not put into the program. */
const onlyWoff2: Plugin = {
  name: "only-woff2",
  enforce: "pre",
  transform: {
    filter: { id: /\.css$/ },
    handler: (code) => ({ code: code.replace(olderFonts, ""), map: null }),
  },
};

export default defineConfig({
  plugins: [onlyWoff2, react(), tailwindcss()],
  // The server puts a nonce in its place, which is another one in each answer.
  html: { cspNonce: "__CSP_NONCE__" },
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: {
    host: "127.0.0.1",
    port: 5173,
    strictPort: true,
    proxy: { [routes.source]: { target: api, changeOrigin: true } },
  },
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0, chunkSizeWarningLimit: 6000 },
});
