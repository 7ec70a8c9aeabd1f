// Views that exist only for one kind of network. A new kind adds a line here.

import type { Scenario } from "../format";
import { airtimeView } from "./airtime";

/** Each returns `null` for a scenario whose network is of another kind. */
const VIEWS: ((scenario: Scenario) => HTMLElement | null)[] = [
  ({ id, airtime }) => (airtime === null ? null : airtimeView(id, airtime)),
];

export function networkViews(scenario: Scenario): HTMLElement[] {
  return VIEWS.map((view) => view(scenario)).filter((view) => view !== null);
}
