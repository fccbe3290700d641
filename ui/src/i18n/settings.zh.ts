// SPDX-License-Identifier: MIT
export const settings = {
  close: "关闭",
  cancel: "取消",
  title: "设置",
  toast: { label: "通知", viewport: "通知（{hotkey}）" },
};
