// SPDX-License-Identifier: MIT
import { Component, type ReactNode } from "react";

/** What breaks in here leaves the rest of the page alone. */
export class Boundary extends Component<
  { children: ReactNode; fallback: ReactNode },
  { failed: boolean }
> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    return this.state.failed ? this.props.fallback : this.props.children;
  }
}
