// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";
import { providers, type Settings, type Vision, visions } from "@/api/settings";
import { Field, Select, TextInput } from "@/components/field";
import {
  type FormErrors,
  keyStaysBehind,
  type ModelForm,
  modelExamples,
  needs,
  withProvider,
} from "@/settings/model-form";

export interface ModelFieldsProps {
  form: ModelForm;
  settings: Settings;
  errors: FormErrors;
  onForm: (form: ModelForm) => void;
}

/** What the key's field says below it. */
function useKeyHint(form: ModelForm, settings: Settings): string {
  const { t } = useTranslation();
  const hint = settings.chatModelApiKeyHint;
  if (keyStaysBehind(form, settings)) return t("settings.model.keyMoves");
  if (hint) return t("settings.model.keyKeep", { hint });
  if (needs(form.provider).key === "optional") return t("settings.model.keyOptional");
  return `${t("settings.model.keyNone")} ${t("settings.model.keyNew")}`;
}

function ConnectionFields({ form, settings, errors, onForm }: ModelFieldsProps) {
  const { t } = useTranslation();
  const keyHint = useKeyHint(form, settings);
  const keeps = settings.chatModelApiKeyHint && !keyStaysBehind(form, settings);
  return (
    <>
      <Field
        label={t("settings.model.name")}
        hint={t("settings.model.nameHint")}
        error={errors.model && t(`settings.model.${errors.model}`)}
      >
        <TextInput
          value={form.model}
          placeholder={modelExamples[form.provider]}
          maxLength={500}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          onChange={(event) => onForm({ ...form, model: event.target.value })}
        />
      </Field>
      <Field label={t("settings.model.key")} hint={keyHint}>
        <TextInput
          type="password"
          value={form.key}
          placeholder={keeps ? settings.chatModelApiKeyHint : ""}
          maxLength={2000}
          autoComplete="off"
          onChange={(event) => onForm({ ...form, key: event.target.value })}
        />
      </Field>
      <Field
        label={t("settings.model.baseUrl")}
        hint={t("settings.model.baseUrlHint")}
        error={errors.baseUrl && t(`settings.model.${errors.baseUrl}`)}
      >
        <TextInput
          type="url"
          value={form.baseUrl}
          placeholder="https://"
          maxLength={2000}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => onForm({ ...form, baseUrl: event.target.value })}
        />
      </Field>
    </>
  );
}

/** The controls of the model's form. */
export function ModelFields(props: ModelFieldsProps) {
  const { form, settings, onForm } = props;
  const { t } = useTranslation();
  const direct = !needs(form.provider).model;
  return (
    <>
      <Field
        label={t("settings.model.provider")}
        hint={direct ? t("settings.model.directHint") : undefined}
      >
        <Select
          value={form.provider}
          options={providers.map((value) => ({
            value,
            label: t(`settings.model.providers.${value}`),
          }))}
          onValueChange={(provider) => onForm(withProvider(form, provider, settings))}
        />
      </Field>
      {!direct && <ConnectionFields {...props} />}
      {!direct && (
        <Field label={t("settings.model.vision")} hint={t("settings.model.visionHint")}>
          <Select
            value={form.vision}
            options={visions.map((value) => ({
              value,
              label: t(`settings.model.visions.${value}`),
            }))}
            onValueChange={(vision) => onForm({ ...form, vision: vision as Vision })}
          />
        </Field>
      )}
    </>
  );
}
