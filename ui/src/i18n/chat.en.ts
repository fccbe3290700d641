// SPDX-License-Identifier: MIT
export const chat = {};
