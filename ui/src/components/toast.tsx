// SPDX-License-Identifier: MIT
/** Short notes about what has happened. Anything may call `toast`; `Toaster` is mounted once. */
import { X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { closeOverlay } from "@/components/overlays";

export type ToastTone = "neutral" | "ok" | "error";

interface Note {
  id: number;
  text: string;
  tone: ToastTone;
}

/** More than these would cover the page; the oldest goes. */
const MAX_NOTES = 4;

let notes: readonly Note[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function change(to: readonly Note[]) {
  notes = to;
  for (const listener of listeners) listener();
}

/** Tell the user; errors stay longer and are read out at once. */
export function toast(text: string, tone: ToastTone = "neutral") {
  const note = { id: nextId++, text, tone };
  change([...notes.filter((other) => other.text !== text), note].slice(-MAX_NOTES));
}

function dismiss(id: number) {
  change(notes.filter((note) => note.id !== id));
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tones: Record<ToastTone, string> = {
  neutral: "border-line",
  ok: "border-ok",
  error: "border-error",
};

/** What is open closes first; where the focus is in a note, that one is meant. */
function passEscapeOn(event: KeyboardEvent) {
  const isInNote = event.target instanceof Element && event.target.closest("[data-note]");
  if (!isInNote && closeOverlay()) event.preventDefault();
}

/** Where notes are shown. */
export function Toaster() {
  const { t } = useTranslation();
  const shown = useSyncExternalStore(subscribe, () => notes);
  return (
    <Radix.Provider label={t("settings.toast.label")} swipeDirection="down">
      {shown.map((note) => (
        <Radix.Root
          key={note.id}
          type={note.tone === "error" ? "foreground" : "background"}
          duration={note.tone === "error" ? 10_000 : 4_000}
          onOpenChange={(open) => !open && dismiss(note.id)}
          onEscapeKeyDown={passEscapeOn}
          data-note
          className={cn(
            "flex items-start gap-2 rounded-xl border border-l-4 bg-raised py-2 pr-2 pl-3",
            "text-text shadow-lg",
            tones[note.tone],
          )}
        >
          <Radix.Description className="min-w-0 flex-1 py-1.5 text-sm break-words">
            {note.text}
          </Radix.Description>
          <Radix.Close asChild>
            <IconButton label={t("settings.close")} size="sm" tooltip={false}>
              <X aria-hidden />
            </IconButton>
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport
        label={t("settings.toast.viewport")}
        className={cn(
          "fixed inset-x-3 bottom-3 z-70 flex flex-col gap-2 outline-none",
          "sm:right-4 sm:bottom-4 sm:left-auto sm:w-96",
        )}
      />
    </Radix.Provider>
  );
}
