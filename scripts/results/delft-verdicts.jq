# A Markdown table of the RFC 8836 verdicts per network, those of the Delft thesis beside ours, from the output of
# `weir run 'delft/*' 'delft/*/*' --controller NAMES --json`. A verdict of ours is "met" if all expectations of the
# row's scenarios that name the requirement hold. The thesis's requirement 5, a stable rate, is none of RFC 8836, so
# those expectations are found by their text. The value behind a verdict is that of the expectation that is furthest
# beyond its limit, or nearest to it.
def row($network; $delft; $rfc; $scenarios; $text; $thesis; $where):
  {network: $network, delft: $delft, rfc: $rfc, scenarios: $scenarios, text: $text, thesis: $thesis, where: $where};
def rows:
  row("wired"; "1, 1a: low delay, also beside others"; "1b"; "^delft/wired-(2/rtt[0-9]+|3)$"; ""; "met"; "6.2.2, 6.2.3"),
  row("wired"; "1b: reacts to a change in about 1 s"; "1c"; "^delft/wired-2/rtt[0-9]+$"; ""; "met"; "6.2.2"),
  row("wired"; "1c: low delay beside TCP"; "1b"; "^delft/wired-4/queue[0-9]+$"; ""; "met"; "6.2.4"),
  row("wired"; "2: fair to media"; "2"; "^delft/wired-3$"; ""; "met"; "6.2.3"),
  row("wired"; "2, 3: shares with TCP"; "3"; "^delft/wired-4/queue[0-9]+$"; ""; "met"; "6.2.4"),
  row("wired"; "4: starts fast"; "4"; "^delft/wired-1$"; ""; "not met"; "6.2.1"),
  row("wired"; "5: stable after the start"; ""; "^delft/wired-1$"; "stays within a tenth"; "met"; "6.2.1"),
  row("Wi-Fi"; "1, 1a: low delay, also beside others"; "1b"; "^delft/wifi-[123]/"; ""; "met"; "6.3.2 to 6.3.4"),
  row("Wi-Fi"; "2: fair to media"; "2"; "^delft/wifi-[123]/"; ""; "met"; "6.3.2 to 6.3.4"),
  row("Wi-Fi"; "5: stable after the start"; ""; "^delft/wifi-2/s[12]$"; "stays within a tenth"; "met"; "6.3.3"),
  row("Wi-Fi"; "1c: low delay beside TCP"; "1b"; "^delft/wifi-4/"; ""; "not met"; "6.3.5"),
  row("Wi-Fi"; "2, 3: shares with TCP"; "3"; "^delft/wifi-4/"; ""; "not met"; "6.3.5"),
  row("4G"; "1, 1a: low delay, also beside others"; "1b"; "^delft/4g-1/"; ""; "met"; "6.4.1"),
  row("4G"; "2: fair to media"; "2"; "^delft/4g-1/"; ""; "met"; "6.4.1"),
  row("4G"; "5: stable after the start"; ""; "^delft/4g-1/s.$"; "stays within a tenth"; "met"; "6.4.1"),
  row("4G"; "1c: low delay beside TCP of another terminal"; "1b"; "^delft/4g-2/s.$"; "another"; "met"; "6.4.2"),
  row("4G"; "2, 3: shares with TCP of another terminal"; "3"; "^delft/4g-2/s.$"; "another"; "met"; "6.4.2"),
  row("4G"; "1c: low delay beside TCP of its own terminal"; "1b"; "^delft/4g-2/s.$"; "its own"; "not met"; "6.4.2"),
  row("4G"; "2, 3: shares with TCP of its own terminal"; "3"; "^delft/4g-2/s.$"; "its own"; "not met"; "6.4.2");
def number: if . >= 100 then round elif . >= 1 then . * 10 | round / 10 else . * 1000 | round / 1000 end;
def margin: (.limit as $limit | (.measured // -1e9) - $limit | if $limit == 0 then . else . / $limit end)
  * (if .bound == "above" then 1 else -1 end);
def verdict: if length == 0 then "-" else
  (if all(.pass) then "met" else "not met" end) as $word
  | min_by(margin) | "\($word): \(.measured | if . == null then "-" else number end), \(if .bound == "above" then "at least" else "at most" end) \(.limit)" end;
. as $runs
| (reduce .[].controller as $one ([]; if index($one) then . else . + [$one] end)) as $controllers
| "| network | requirement of the thesis | RFC 8836 | thesis | \($controllers | map("\(.): value, limit") | join(" | ")) |",
  "|---|---|---|---|\($controllers | map("---|") | join(""))",
  (rows as $row
   | [$controllers[] as $controller
      | [$runs[] | select(.controller == $controller and (.scenario | test($row.scenarios)))
         | .expect[] | select(($row.rfc == "" or (.requirements | index($row.rfc))) and (.text | test($row.text)))] | verdict] as $ours
   | "| \($row.network) | \($row.delft) | \(if $row.rfc == "" then "-" else $row.rfc end) | \($row.thesis) (\($row.where)) | \($ours | join(" | ")) |")
