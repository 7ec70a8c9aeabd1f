# A Markdown table of remedies for a call that competes with TCP in a Wi-Fi cell, from
# `weir run 'delft/wifi-4/s1*' --json`.
def r: if . == null then "-" else (. * 100 | round / 100 | tostring) end;
def flow($name): .flows[] | select(.flow == $name);
def part($section): .sections[] | select(.name == $section);
def tcp($way; $section): [.flows[] | select(.kind == "tcp" and (.flow | endswith($way))) | part($section).rate_mbps.mean // 0] | add | r;
"| scenario | call down | delay down | call up | TCP down | call down | delay down | call up | TCP down | TCP up |",
"|---|---|---|---|---|---|---|---|---|---|",
(.[] | "| `\(.scenario)` | \([("TCP down", "TCP both ways") as $s
  | (flow("media-1-down") | part($s) | (.rate_mbps.mean | r), (.rtt_above_min_ms.mean | r)),
    (flow("media-1-up") | part($s) | .rate_mbps.mean | r), tcp("down"; $s),
    (if $s == "TCP both ways" then tcp("up"; $s) else empty end)] | join(" | ")) |")
