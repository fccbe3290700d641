// SPDX-License-Identifier: MIT
/**
 * Texts of the page. Each area has a file `<area>.en.ts` and `<area>.zh.ts` with the same keys; a
 * missing key is a type error.
 */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "@/i18n/en";
import { zh } from "@/i18n/zh";
import { browserStorage } from "@/lib/storage";

const KEY = "sandbox-agent.language";

export const languages = { en: "English", zh: "中文" } as const;
export type Language = keyof typeof languages;

/** The language that was chosen here before, else the browser's. */
function initial(): Language {
  const kept = browserStorage.getItem(KEY);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** Change the language of the page, and remember it. */
export function setLanguage(language: Language) {
  browserStorage.setItem(KEY, language);
  document.documentElement.lang = language;
  void i18next.changeLanguage(language);
}

void i18next.use(initReactI18next).init({
  lng: initial(),
  fallbackLng: "en",
  resources: { en: { translation: en }, zh: { translation: zh } },
  interpolation: { escapeValue: false },
});
document.documentElement.lang = i18next.language;
