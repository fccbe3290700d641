// SPDX-License-Identifier: MIT
import { Eye, EyeOff } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, checkKey, getKey, onUnauthorized, setKey } from "@/api/client";
import { Button, IconButton } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { Field, TextInput } from "@/components/field";
import { useReason } from "@/settings/tab-state";

/** The field and its check; `wrong` when the key before was refused. */
function KeyForm({ wrong, onAccepted }: { wrong: boolean; onAccepted: (key: string) => void }) {
  const { t } = useTranslation();
  const reason = useReason();
  const [text, setText] = useState("");
  const [shown, setShown] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(wrong ? t("settings.key.wrong") : "");
  const check = async () => {
    const key = text.trim();
    if (!key) return setError(t("settings.key.missing"));
    setBusy(true);
    setError("");
    try {
      await checkKey(key);
      onAccepted(key);
    } catch (failure) {
      const refused = failure instanceof ApiError && failure.status === 401;
      setError(refused ? t("settings.key.wrong") : reason(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="flex flex-col gap-4"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!busy) void check();
      }}
    >
      <div className="flex items-start gap-2">
        <Field label={t("settings.key.label")} error={error} className="flex-1">
          <TextInput
            type={shown ? "text" : "password"}
            value={text}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
        <IconButton
          label={t(shown ? "settings.key.hide" : "settings.key.show")}
          className="mt-6.5"
          tooltip={false}
          onClick={() => setShown(!shown)}
        >
          {shown ? <EyeOff aria-hidden /> : <Eye aria-hidden />}
        </IconButton>
      </div>
      <Button type="submit" variant="primary" busy={busy} className="self-end">
        {t(busy ? "settings.key.checking" : "settings.key.use")}
      </Button>
    </form>
  );
}

/** Asks for the server's key when a request is refused without one. Mounted once, always. */
export function KeyDialog() {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const [wrong, setWrong] = useState(false);
  useEffect(
    () =>
      onUnauthorized(() => {
        setWrong(getKey() !== null);
        setOpen(true);
      }),
    [],
  );
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t("settings.key.title")}
      description={t("settings.key.text")}
      size="sm"
      dismissible={false}
    >
      <KeyForm
        wrong={wrong}
        onAccepted={(key) => {
          setOpen(false);
          setKey(key);
        }}
      />
    </Dialog>
  );
}
