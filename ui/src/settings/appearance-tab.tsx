// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";
import { Field, Select } from "@/components/field";
import { type Language, languages, setLanguage } from "@/i18n";
import { setTheme, type Theme, themes, useTheme } from "@/lib/theme";

/** How the page looks, and its language. Both are kept in this browser. */
export function AppearanceTab() {
  const { t, i18n } = useTranslation();
  const theme = useTheme();
  return (
    <div className="flex flex-col gap-4 sm:max-w-sm">
      <Field label={t("settings.appearance.theme")}>
        <Select
          value={theme}
          options={themes.map((value) => ({
            value,
            label: t(`settings.appearance.themes.${value}`),
          }))}
          onValueChange={(value) => setTheme(value as Theme)}
        />
      </Field>
      <Field label={t("settings.appearance.language")}>
        <Select
          value={i18n.language}
          options={Object.entries(languages).map(([value, label]) => ({ value, label }))}
          onValueChange={(value) => setLanguage(value as Language)}
        />
      </Field>
    </div>
  );
}
