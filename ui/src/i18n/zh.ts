// SPDX-License-Identifier: MIT
import { chat } from "@/i18n/chat.zh";
import type { Translation } from "@/i18n/en";
import { settings } from "@/i18n/settings.zh";
import { tools } from "@/i18n/tools.zh";

export const zh: Translation = { app: { title: "sandbox-agent" }, chat, settings, tools };
