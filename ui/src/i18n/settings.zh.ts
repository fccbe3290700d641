// SPDX-License-Identifier: MIT
export const settings = {};
