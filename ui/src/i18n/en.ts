// SPDX-License-Identifier: MIT
import { chat } from "@/i18n/chat.en";
import { settings } from "@/i18n/settings.en";
import { tools } from "@/i18n/tools.en";

export const en = { app: { title: "sandbox-agent" }, chat, settings, tools };

type Texts<T> = { [K in keyof T]: T[K] extends string ? string : Texts<T[K]> };

/** The shape that every language has to have. */
export type Translation = Texts<typeof en>;
