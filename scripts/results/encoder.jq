# Table of what an encoder makes of its target, in real calls and in the simulation: the sections of all scenarios.
#
# usage: weir compare CALLS RUNS --json | jq -r -f scripts/results/encoder.jq

def number(digits):
  if . == null then "–"
  else . * pow(10; digits) | round
    | if digits == 0 then tostring
      else tostring | (if length <= digits then "0" * (digits + 1 - length) + . else . end)
        | .[:length - digits] + "." + .[length - digits:]
      end
  end;
def with_spread(digits; mean; confidence):
  (mean | number(digits)) + (if confidence == null then "" else " ± " + (confidence | number(digits)) end);
def pair(digits):
  with_spread(digits; .real; .real_confidence) + "; " + with_spread(digits; .simulated; .simulated_confidence);
def signed(digits):
  if . == null then "–" else (if . < 0 then "-" else "+" end) + (fabs | number(digits)) end;
def goal:
  [["rate", .rate_mbps], ["delay", .queuing_delay_p95_ms]]
  | map(select(.[1].pass == false))
  | if length == 0 then "met"
    else map(.[0] + (if .[1].within_spread then " within spread" else " missed" end)) | join(", ")
    end;

[.[] | select(.section)]
| (["| scenario, section | rate, Mbit/s: calls; simulated | | p95 of the queue, ms | | goal |", "|---|---|---|---|---|---|"]
   + [range(length) as $i
      | (if $i == 0 or .[$i].scenario != .[$i - 1].scenario then "`\(.[$i].scenario)`, " else "" end) as $name
      | .[$i]
      | "| \($name)\(.section) | \(.rate_mbps | pair(2)) | \(.rate_mbps.error // null | if . then 100 * . else . end | signed(0)) % | \(.queuing_delay_p95_ms | pair(0)) | \(.queuing_delay_p95_ms.error | signed(0)) | \(goal) |"]
   + ["",
      "\([.[] | select(goal == "met")] | length) of \(length) sections meet both goals, \([.[] | select(goal | contains("missed") | not) | select(goal != "met")] | length) more are within the spread."])
| .[]
