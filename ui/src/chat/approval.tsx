// SPDX-License-Identifier: MIT
import { ShieldQuestion } from "lucide-react";
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { choicesOf, choose, type Draft, decisionOf, summaryOf, undecided } from "@/chat/drafts";
import type { ActionRequest, Decision, DecisionType } from "@/chat/interrupts";
import { Button } from "@/components/button";
import { cn } from "@/components/cn";
import { inputClass } from "@/components/field";
import { revealHidden } from "@/markdown/hidden";
import { useRuntime } from "@/tools/runtimes";
import { RuntimeBadge } from "@/tools/sessions";
import { ToolInput } from "@/tools/tool-input";

interface RequestProps {
  request: ActionRequest;
  allowed: readonly DecisionType[];
  draft: Draft;
  onDraft: (draft: Draft) => void;
  /** No other call is asked about: its approval needs no further word. */
  single: boolean;
}

/** Where a call would run. */
function Place({ session }: { session: unknown }) {
  const { t } = useTranslation();
  const runtime = useRuntime(session);
  if (typeof session !== "string") return null;
  return (
    <p className="mb-2 flex flex-wrap items-center gap-2 text-sm text-muted">
      <span className="min-w-0 font-mono text-xs break-all">
        {t("tools.session.id", { id: revealHidden(session) })}
      </span>
      {runtime && <RuntimeBadge runtime={runtime} />}
    </p>
  );
}

/** One call: what it would do, and what is to become of it. */
function Request({ request, allowed, draft, onDraft, single }: RequestProps) {
  const { t, i18n } = useTranslation();
  const id = useId();
  const editing = draft.type === "edit";
  const name = revealHidden(request.name);
  // Of the server's own tools it says what the title says, but in English.
  const isKnown = i18n.exists(`tools.title.${request.name}`);
  const summary = isKnown ? "" : revealHidden(summaryOf(request));
  return (
    <fieldset className="min-w-0 rounded-xl border border-line bg-raised p-3">
      <legend className="max-w-full px-1 text-sm font-medium break-words">
        {t(`tools.title.${request.name}`, { defaultValue: t("tools.title.unknown", { name }) })}
      </legend>
      {summary && <p className="mb-2 text-sm break-words text-muted">{summary}</p>}
      {!editing && <Place session={request.args.session_id} />}
      <ToolInput
        key={editing ? "edit" : "show"}
        name={request.name}
        args={request.args}
        onChange={editing ? (args) => onDraft({ ...draft, args }) : undefined}
      />
      {editing && draft.args === null && (
        <p role="alert" className="mt-1 text-xs text-error">
          {t("chat.approval.invalid")}
        </p>
      )}
      <div className="mt-3 flex flex-wrap gap-2">
        {choicesOf(allowed, draft).map((type) => (
          <Button
            key={type}
            size="sm"
            variant={type === "approve" && single ? "primary" : "secondary"}
            aria-pressed={draft.type === type}
            className={cn(draft.type === type && "border-accent bg-accent/12 font-semibold")}
            onClick={() => onDraft(choose(request, draft, type))}
          >
            {t(`chat.approval.${type}`)}
          </Button>
        ))}
        {editing && (
          <Button size="sm" onClick={() => onDraft(choose(request, draft, null))}>
            {t("chat.edit.cancel")}
          </Button>
        )}
      </div>
      {draft.type === "reject" && (
        <div className="mt-3">
          <label htmlFor={id} className="text-sm font-medium">
            {t("chat.approval.reason")}
          </label>
          <textarea
            id={id}
            rows={2}
            className={cn(inputClass, "mt-1 py-2")}
            value={draft.message}
            onChange={(event) => onDraft({ ...draft, message: event.target.value })}
          />
        </div>
      )}
    </fieldset>
  );
}

export interface ApprovalProps {
  requests: readonly ActionRequest[];
  allowed: readonly (readonly DecisionType[])[];
  onDecide: (decisions: Decision[]) => void;
}

/** Calls that wait for a person's word. */
export function Approval({ requests, allowed, onDecide }: ApprovalProps) {
  const { t } = useTranslation();
  const title = useId();
  const [drafts, setDrafts] = useState<Draft[]>(() => requests.map(undecided));
  const decisions = requests.flatMap((request, i) => {
    const draft = drafts[i];
    return (draft && decisionOf(request, draft)) ?? [];
  });
  const complete = decisions.length === requests.length;
  const single = requests.length === 1;
  const approvable = allowed.every((types) => types.includes("approve"));
  const decided = drafts.some(({ type }) => type !== null && type !== "approve");
  return (
    <section
      aria-labelledby={title}
      className="flex flex-col gap-3 rounded-2xl border border-warn/60 bg-warn/8 p-4"
    >
      <h2 id={title} className="flex items-center gap-2 font-semibold">
        <ShieldQuestion aria-hidden className="size-5 text-warn" />
        {t("chat.approval.title", { count: requests.length })}
      </h2>
      {requests.map((request, i) => (
        <Request
          // biome-ignore lint/suspicious/noArrayIndexKey: the list of a question never changes
          key={i}
          request={request}
          allowed={allowed[i] ?? []}
          draft={drafts[i] ?? undecided(request)}
          single={single}
          onDraft={(draft) => {
            if (single && draft.type === "approve") return onDecide([{ type: "approve" }]);
            setDrafts((old) => old.map((d, n) => (n === i ? draft : d)));
          }}
        />
      ))}
      <div className="flex flex-wrap justify-end gap-2">
        {approvable && !single && (
          <Button
            disabled={decided}
            onClick={() => onDecide(requests.map(() => ({ type: "approve" })))}
          >
            {t("chat.approval.approveAll")}
          </Button>
        )}
        {(!single || drafts[0]?.type) && (
          <Button variant="primary" disabled={!complete} onClick={() => onDecide(decisions)}>
            {t("chat.approval.submit")}
          </Button>
        )}
      </div>
    </section>
  );
}
