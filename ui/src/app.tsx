// SPDX-License-Identifier: MIT
import { useTranslation } from "react-i18next";

/** The whole page. */
export function App() {
  const { t } = useTranslation();
  return <main>{t("app.title")}</main>;
}
