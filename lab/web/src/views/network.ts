// Views that exist only for one kind of network or server. A new kind adds a line here.

import type { Scenario } from "../format";
import { airtimeView } from "./airtime";
import { cellularViews } from "./cellular";
import { serverView } from "./server";

/** Each returns nothing for a scenario whose network is of another kind. */
const VIEWS: ((scenario: Scenario) => HTMLElement[])[] = [
  ({ id, airtime }) => (airtime === null ? [] : [airtimeView(id, airtime)]),
  ({ id, server }) => (server === null ? [] : [serverView(id, server)]),
  (scenario) => (scenario.cellular === null ? [] : cellularViews(scenario, scenario.cellular)),
];

export function networkViews(scenario: Scenario): HTMLElement[] {
  return VIEWS.flatMap((view) => view(scenario));
}
