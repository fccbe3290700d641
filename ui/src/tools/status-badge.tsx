// SPDX-License-Identifier: MIT
import {
  Box,
  Check,
  CircleX,
  Clock,
  Code,
  Download,
  Hand,
  Hourglass,
  List,
  type LucideIcon,
  Skull,
  Square,
  SquareTerminal,
  Upload,
  Wrench,
} from "lucide-react";
import { useTranslation } from "react-i18next";
import { Badge, type BadgeTone } from "@/components/badge";
import { Spinner } from "@/components/spinner";
import type { CallStatus } from "@/tools/payload";

const icons: Record<string, LucideIcon> = {
  create_session: Box,
  execute_code: Code,
  execute_terminal: SquareTerminal,
  export_files: Download,
  import_files: Upload,
  interrupt_session: Hand,
  list_sessions: List,
  stop_session: Square,
};

/** What a tool looks like. */
export function ToolIcon({ name }: { name: string }) {
  const Icon = (Object.hasOwn(icons, name) && icons[name]) || Wrench;
  return <Icon aria-hidden className="size-4 shrink-0 text-muted" />;
}

const looks: Record<CallStatus, { tone: BadgeTone; icon?: LucideIcon }> = {
  running: { tone: "accent" },
  waiting: { tone: "neutral", icon: Hourglass },
  ok: { tone: "ok", icon: Check },
  error: { tone: "error", icon: CircleX },
  timeout: { tone: "warn", icon: Clock },
  interrupted: { tone: "warn", icon: Hand },
  died: { tone: "error", icon: Skull },
};

/** How a call stands, in a word. */
export function StatusBadge({ status }: { status: CallStatus }) {
  const { t } = useTranslation();
  const { tone, icon: Icon } = looks[status];
  return (
    <Badge tone={tone}>
      {Icon ? <Icon aria-hidden className="size-3" /> : <Spinner className="size-3" />}
      {t(`tools.status.${status}`)}
    </Badge>
  );
}
