// SPDX-License-Identifier: MIT
export { Select, type SelectOption, type SelectProps } from "@/components/field";
