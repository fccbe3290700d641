// SPDX-License-Identifier: MIT
export const tools = {};
