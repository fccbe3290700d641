// SPDX-License-Identifier: MIT
import { PanelLeft, SquarePen } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ComposerHandle } from "@/chat/composer";
import { ConnectionBanner } from "@/chat/connection-banner";
import { IconButton } from "@/components/button";
import { cn } from "@/components/cn";
import { Spinner } from "@/components/spinner";
import { Toaster } from "@/components/toast";
import { useKept } from "@/lib/kept-state";
import { useShortcuts } from "@/lib/shortcuts";
import { browserStorage } from "@/lib/storage";
import "@/lib/theme";
import { getThreadId, openThread, useThreadId } from "@/lib/thread-url";
import { KeyDialog } from "@/settings/key-dialog";
import { Drawer, useNarrow } from "@/threads/drawer";
import { Sidebar } from "@/threads/sidebar";
import { threadTitle, useThread, useThreads } from "@/threads/threads";

const ChatView = lazy(() =>
  import("@/chat/chat-view").then(({ ChatView }) => ({ default: ChatView })),
);
const SettingsDialog = lazy(() =>
  import("@/settings/settings-dialog").then(({ SettingsDialog }) => ({ default: SettingsDialog })),
);

/** The title of the open conversation; one that is too old for the list is asked for. */
function useTitle(threadId: string | null): string | null {
  const { data } = useThreads(1, false);
  const listed = data?.find((one) => one.thread_id === threadId);
  const single = useThread(data && !listed ? threadId : null);
  const thread = listed ?? single.data;
  return thread ? threadTitle(thread) : null;
}

function SkipLink() {
  const { t } = useTranslation();
  return (
    <a
      href="#composer"
      className={cn(
        "sr-only z-50 rounded-lg bg-accent px-3 py-2 text-on-accent",
        "focus:not-sr-only focus:absolute focus:top-2 focus:left-2",
      )}
    >
      {t("chat.skip")}
    </a>
  );
}

/** The whole page. */
export function App() {
  const { t } = useTranslation();
  const threadId = useThreadId();
  const title = useTitle(threadId);
  const narrow = useNarrow();
  const [wide, setWide] = useKept(browserStorage, "sandbox-agent.sidebar", true);
  const [drawer, setDrawer] = useState(false);
  const [settings, setSettings] = useState<"never" | "open" | "closed">("never");
  const [running, setRunning] = useState(false);
  const composer = useRef<ComposerHandle>(null);

  const openSettings = useCallback(() => setSettings("open"), []);
  const shown = narrow ? drawer : wide;
  const setShown = narrow ? setDrawer : setWide;
  const go = (id: string | null) => {
    openThread(id);
    setDrawer(false);
  };
  const newChat = () => {
    go(null);
    composer.current?.focus();
  };

  useShortcuts({
    "mod+shift+o": newChat,
    "mod+shift+s": () => setShown(!shown),
    "mod+,": openSettings,
    "/": () => composer.current?.focus(),
  });

  useEffect(() => {
    const name = title ? `${title} · ${t("app.title")}` : t("app.title");
    document.title = running ? `● ${name}` : name;
  }, [title, running, t]);

  const sidebar = (
    <Sidebar
      current={threadId}
      onOpen={go}
      onNew={newChat}
      onDeleted={(id) => id === getThreadId() && openThread(null, true)}
      onSettings={openSettings}
      onClose={() => setShown(false)}
    />
  );
  return (
    <div className="flex h-dvh overflow-hidden">
      <SkipLink />
      {!narrow && wide && <aside className="w-68 shrink-0 border-r border-line">{sidebar}</aside>}
      {narrow && (
        <Drawer open={drawer} onOpenChange={setDrawer}>
          {sidebar}
        </Drawer>
      )}
      <main className="relative flex min-w-0 flex-1 flex-col">
        <header className="flex h-13 shrink-0 items-center gap-1 border-b border-line px-2">
          {(narrow || !wide) && (
            <>
              <IconButton label={t("chat.threads.show")} onClick={() => setShown(true)}>
                <PanelLeft aria-hidden />
              </IconButton>
              <IconButton label={t("chat.threads.new")} onClick={newChat}>
                <SquarePen aria-hidden />
              </IconButton>
            </>
          )}
          <h1 className="min-w-0 flex-1 truncate px-2 text-sm font-medium">
            {title ?? t(threadId ? "chat.threads.untitled" : "chat.threads.new")}
          </h1>
        </header>
        <ConnectionBanner />
        <Suspense
          fallback={
            <div className="flex flex-1 items-center justify-center text-muted">
              <Spinner label={t("chat.loading")} />
            </div>
          }
        >
          <ChatView
            ref={composer}
            threadId={threadId}
            onSettings={openSettings}
            onRunning={setRunning}
          />
        </Suspense>
      </main>
      {settings !== "never" && (
        <Suspense fallback={null}>
          <SettingsDialog
            open={settings === "open"}
            onOpenChange={(open) => setSettings(open ? "open" : "closed")}
          />
        </Suspense>
      )}
      <KeyDialog />
      <Toaster />
    </div>
  );
}
