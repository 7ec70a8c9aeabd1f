# A Markdown table of lund's scenarios as pipelines: thesis, call and simulation of each controller, from
# the summaries of records: `jq -rn -f scripts/results/pipeline-calls.jq calls/*/*/summary.json runs/*/*/summary.json`.
# Rates are in Mbit/s. Queue: 95th percentile of the queuing delay. Responsiveness: time until the
# target differs by 250 kbit/s from the one at a change of the capacity. Values are means over the
# runs; a failed call counts in none. The goals are a rate within 10 % and a queue within 30 ms.
def scenarios: ["lund/rmcat-ns3", "lund/sudden-reduction", "lund/sweden-china"];
def controllers: ["gcc", "nada", "scream"];
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def shown($digits): pow(10; $digits) as $unit | if . == null then "-" else . * $unit | round / $unit | tostring end;
def signed($digits): if . == null then "-" else (if . > 0 then "+" else "" end) + shown($digits) end;
def percent: if . == null then null else . * 100 end;
def both($call; $sim; $digits): "\($call | shown($digits)); \($sim | shown($digits))";
# Of several calls, the lowest and the highest too.
def spread($values; $sim; $digits):
  ($values | map(select(. != null)))
  | if length < 2 then both(mean; $sim; $digits)
    else "\(mean | shown($digits)) (\(min | shown($digits)) to \(max | shown($digits))); \($sim | shown($digits))" end;
# What the thesis printed of a controller. Its GCC is the one of the draft, so a record of gcc-draft has it.
def words: {"target_utilization": "target over capacity", "loss_ratio.mean": "mean loss", "loss_ratio.max": "loss peak",
  "rtt_ms.mean": "RTT, ms", "rtt_ms.max": "RTT peak, ms", "responsiveness_up_s": "upward, s", "responsiveness_s": "responsiveness, s",
  "late_rate_mbps": "late rate", "utilization": "rate over capacity"}[.] // .;
def thesis($controller):
  (if $controller == "gcc" then "gcc-draft" else $controller end) as $name
  | [.[] | select(.controller == $name) | .paper[]? | "\(.metric | words) \(.published)"] | unique | join("; ")
  | if . == "" then "-" else . end;

[inputs | select(.scenario | IN(scenarios[]))] as $all
| "| scenario | controller | calls | thesis | rate | error of the sim | RTT, ms | loss, % | p95 of the queue, ms | error | responsiveness, s | goals |",
  "|---|---|---:|---|---|---|---|---|---|---|---|---|",
  (scenarios[] as $scenario | controllers[] as $controller
   | [$all[] | select(.scenario == $scenario)] as $here
   | [$here[] | select(.controller == $controller and .engine == "call" and .calls.made == .calls.succeeded)] as $calls
   | [$here[] | select(.controller == $controller and .engine == "sim")] as $sims
   | (if any($calls[]; .calls.disturbed // .calls.bent) then ", disturbed" else "" end) as $mark
   | def of(value): [[$calls, $sims][] | [.[].flows[0] | value] | mean];
     if $calls == [] then "| `\($scenario)` | \($controller) | 0 | \($here | thesis($controller)) | not run | | | | | | | |"
     else
       of(.rate_mbps.mean) as [$rate, $rate_sim] | of(.rtt_ms.mean) as [$rtt, $rtt_sim]
       | of(.loss_ratio.mean | percent) as [$loss, $loss_sim] | of(.queuing_delay_ms.p95) as [$queue, $queue_sim]
       | of(.responsiveness_s) as [$quick, $quick_sim]
       | (if $rate_sim == null then null else 100 * ($rate_sim - $rate) / $rate end) as $rate_error
       | (if $queue_sim == null then null else $queue_sim - $queue end) as $queue_error
       | [if ($rate_error | fabs) > 10 then "rate" else empty end, if ($queue_error | fabs) > 30 then "queue" else empty end] as $missed
       | [ "`\($scenario)`\($mark)", $controller, ($calls | length | tostring), ($here | thesis($controller)),
           spread([$calls[].flows[0].rate_mbps.mean]; $rate_sim; 3), "\($rate_error | signed(1)) %", both($rtt; $rtt_sim; 0), both($loss; $loss_sim; 2),
           spread([$calls[].flows[0].queuing_delay_ms.p95]; $queue_sim; 0), ($queue_error | signed(0)), both($quick; $quick_sim; 1),
           (if $rate_error == null then "-" elif $missed == [] then "met" else "missed: \($missed | join(", "))" end) ]
         | "| \(join(" | ")) |"
     end)
