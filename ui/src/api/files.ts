// SPDX-License-Identifier: MIT
/** A thread's files: uploads with progress, downloads, and large displays as blob URLs. */
import i18next from "i18next";
import { ApiError, errorText, getKey, keyHeaders, reportUnauthorized, request } from "@/api/client";

/** A file as the server keeps it; `path` is what `import_files` takes. */
export interface UploadedFile {
  name: string;
  path: string;
  size: number;
}

export interface UploadOptions {
  /** Called with 0..1 of all bytes. */
  onProgress?: (part: number) => void;
  signal?: AbortSignal;
}

const threadPath = (threadId: string) => `/threads/${encodeURIComponent(threadId)}`;

/** The path of an exported file or folder; it holds no key. */
export function downloadPath(threadId: string, sessionId: string, path: string): string {
  const query = `session_id=${encodeURIComponent(sessionId)}&path=${encodeURIComponent(path)}`;
  return `${threadPath(threadId)}/files/download?${query}`;
}

/**
 * Send files to a thread, all in one form. `fetch` tells nothing about progress, so this is an
 * XMLHttpRequest. Fails as an {@link ApiError}, or as an AbortError when `signal` ends it.
 */
export function uploadFiles(
  threadId: string,
  files: readonly File[],
  { onProgress, signal }: UploadOptions = {},
): Promise<UploadedFile[]> {
  const form = new FormData();
  for (const file of files) form.append("files", file, file.name);
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    const abort = () => xhr.abort();
    const aborted = () => reject(new DOMException("the upload was stopped", "AbortError"));
    if (signal?.aborted) return aborted();
    signal?.addEventListener("abort", abort, { once: true });
    const key = getKey();
    xhr.open("POST", `${threadPath(threadId)}/files/upload`);
    for (const [name, value] of Object.entries(keyHeaders())) xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = (event) => {
      if (event.lengthComputable && event.total > 0) onProgress?.(event.loaded / event.total);
    };
    xhr.onabort = aborted;
    xhr.onerror = () => reject(new ApiError(0, i18next.t("settings.files.lost")));
    xhr.onloadend = () => signal?.removeEventListener("abort", abort);
    xhr.onload = () => {
      if (xhr.status === 200) {
        onProgress?.(1);
        resolve(JSON.parse(xhr.responseText) as UploadedFile[]);
        return;
      }
      if (xhr.status === 401) reportUnauthorized(key);
      const said = errorText(xhr.responseText) || xhr.statusText;
      const text = xhr.status === 413 ? i18next.t("settings.files.tooLarge", { said }) : said;
      reject(new ApiError(xhr.status, text));
    };
    xhr.send(form);
  });
}

/** The file name of a Content-Disposition, without any folder in it. */
export function dispositionName(header: string | null): string | null {
  if (!header) return null;
  const wide = /filename\*\s*=\s*utf-8''([^;]+)/i.exec(header)?.[1];
  let name = /filename\s*=\s*"([^"]*)"/i.exec(header)?.[1] ?? null;
  if (wide)
    try {
      name = decodeURIComponent(wide.trim());
    } catch {
      // A broken encoding: the plain form has to do.
    }
  const last = name?.split(/[/\\]/).pop();
  return last && last !== "." && last !== ".." ? last : null;
}

/** Hand a blob to the browser's downloads. */
export function saveBlob(blob: Blob, name: string) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser takes the blob when the download begins, which is after this task.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

type Picker = (options: { suggestedName: string }) => Promise<FileSystemFileHandle>;

/** From here on a file goes to the disk as it comes, where the browser can do that. */
const STREAM_BYTES = 64 * 1024 * 1024;

/** Where the user wants a large file; undefined where that is not possible here. */
async function pickTarget(name: string, size: number): Promise<FileSystemFileHandle | undefined> {
  const picker = (window as { showSaveFilePicker?: Picker }).showSaveFilePicker;
  if (!picker || size < STREAM_BYTES) return undefined;
  try {
    return await picker.call(window, { suggestedName: name });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    return undefined;
  }
}

export interface DownloadOptions {
  /** The name where the server gives none. */
  name?: string;
  /** What is known of its size; a large file is written as it comes. */
  size?: number;
  signal?: AbortSignal;
}

/**
 * Get a file of the server with the key in a header, and keep it as a download. Ends with an
 * AbortError when the user does not choose a place.
 */
export async function downloadFile(path: string, options: DownloadOptions = {}): Promise<void> {
  const fallback = options.name?.split(/[/\\]/).pop() || "download";
  // A picker opens only right after a click, so it cannot wait for the answer.
  const target = await pickTarget(fallback, options.size ?? 0);
  const response = await request(path, { signal: options.signal });
  if (target && response.body) {
    await response.body.pipeTo(await target.createWritable());
    return;
  }
  const name = dispositionName(response.headers.get("content-disposition")) ?? fallback;
  saveBlob(await response.blob(), name);
}
export { type BlobUrl, blobText, useBlobUrl } from "@/api/blobs";
