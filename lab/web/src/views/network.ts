// Views that exist only for one kind of network. A new kind adds a line here.

import type { Scenario } from "../format";
import { airtimeView } from "./airtime";
import { cellularViews } from "./cellular";

/** Each returns nothing for a scenario whose network is of another kind. */
const VIEWS: ((scenario: Scenario) => HTMLElement[])[] = [
  ({ id, airtime }) => (airtime === null ? [] : [airtimeView(id, airtime)]),
  (scenario) => (scenario.cellular === null ? [] : cellularViews(scenario, scenario.cellular)),
];

export function networkViews(scenario: Scenario): HTMLElement[] {
  return VIEWS.flatMap((view) => view(scenario));
}
