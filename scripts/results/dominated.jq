# A Markdown table of the scenarios in which another controller is better in rate and in delay at once, from
# `weir research score ... --controller all --own NAME --json`:
#
#   weir research score 'rfc8867/*' --controller all --seeds 3 --json | jq -r --arg own sluice -f scripts/results/dominated.jq
#
# The rate is that of all flows under the controller. The delay is the p95 in the network and in the sender
# together, without the first 3 s of a flow and the first 2 s after a fall. Both are means over the seeds.
# "Better" is more than 1 % of the rate and 1 ms of the delay: less is not seen by anybody. A controller that
# is better in one scenario by several rates is listed once, with the largest rate.
def mean: add / length;
def fixed($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
[.runs | group_by(.scenario)[] | group_by(.controller)
 | map({scenario: .[0].scenario, controller: .[0].controller,
        rate: (map(.rate_mbps) | mean), delay: (map(.network_ms + .sender_ms) | mean)})
 | (map(select(.controller == $own))[0]) as $mine
 | {scenario: $mine.scenario, mine: $mine,
    better: (map(select(.rate > $mine.rate * 1.01 and .delay < $mine.delay - 1)) | sort_by(-.rate))}] as $all
| [$all[] | select(.better | length > 0)] as $beaten
| "| scenario | \($own): Mbit/s, ms | better in both: Mbit/s, ms |", "|---|---|---|",
  ($beaten[] | "| `\(.scenario)` | \(.mine.rate | fixed(3)), \(.mine.delay | fixed(0)) | "
    + ([.better[] | "\(.controller) \(.rate | fixed(3)), \(.delay | fixed(0))"] | join("; ")) + " |"),
  "", "\($all | length) scenarios; \($beaten | length) in which another controller is better in both."
