"""The report of a fleet: one HTML file that needs no network, of a bounded size whatever the number of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from ._weir import WeirError, __version__
from .fleet_calls import Pages, command
from .fleet_numbers import (
    BY_CAUSE,
    CAUSES,
    ERRORS,
    HEADLINE,
    LIMITED,
    MAIN_CAUSES,
    TOTALS,
    TYPICAL,
    USERS_MIN,
    VALUES_MAX,
    WORST,
    Compared,
    by_column,
    check_columns,
    compared,
    connect,
    pattern,
    rows,
    text,
)
from .fleet_sources import check_name
from .fleet_trend import plot, query, unit_of
from .fleet_what_if import CONTROLLERS, SAME, WhatIf, of_calls

#: Letters of a verdict and of a name that are shown.
VERDICT_MAX, NAME_MAX = 400, 200
#: Largest p value that is called a change.
SIGNIFICANT = 0.05

#: The causes in words, and whose part they are.
WORDS = {
    "connection": ("the connection failed or was interrupted", "network"),
    "uplink_capacity": ("the uplink was full", "network"),
    "downlink_capacity": ("the downlink was full", "network"),
    "uplink_loss": ("the uplink lost packets", "network"),
    "downlink_loss": ("the downlink lost packets", "network"),
    "air_time": ("the radio cell paused: others had the air, or the signal faded", "network"),
    "delay": ("the path was long", "network"),
    "controller": ("the congestion controller held the rate down", "controller"),
    "encoder": ("the encoder kept a picture that was too large", "device"),
    "processor": ("the sender's processor was too slow", "device"),
    "application": ("the application gave little to send", "application"),
    "far_end": ("the far end, or a server, sent a smaller picture", "far end"),
    "unexplained": ("freezes or concealed audio without a cause", "unknown"),
    "none": ("nothing limited the call", ""),
    "all causes": ("any cause", ""),
}

STYLE = """
:root{color-scheme:light dark;--background:#fff;--text:#1f2328;--muted:#57606a;--line:#d5dae0;--raised:#f5f6f8;
--link:#0b5cad;--good:#0b6b4f;--bad:#a63f00}
@media (prefers-color-scheme:dark){:root{--background:#15181c;--text:#e6e9ed;--muted:#a3abb5;--line:#343a42;
--raised:#1d2126;--link:#7cbcf5;--good:#4cc9a0;--bad:#f2945c}}
*{box-sizing:border-box}
body{margin:0;background:var(--background);color:var(--text);overflow-wrap:break-word;
font:15px/1.55 system-ui,"Segoe UI","Liberation Sans",Arial,sans-serif}
main{max-width:1080px;margin:0 auto;padding:24px 16px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 8px}h2{font-size:21px;margin:40px 0 8px}
p{margin:8px 0;max-width:75ch}.muted{color:var(--muted);font-size:13px}
.facts{display:flex;flex-wrap:wrap;gap:8px;margin:16px 0;padding:0;list-style:none}
.facts li{flex:1 1 140px;padding:12px 16px;border:1px solid var(--line);border-radius:8px;background:var(--raised)}
.facts b{display:block;font-size:21px;line-height:1.3}.facts span{color:var(--muted);font-size:13px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{padding:6px 12px 6px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{font-size:13px;font-weight:600;color:var(--muted)}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;
white-space:nowrap;overflow-wrap:normal}td:first-child{min-width:130px}.name{max-width:240px;overflow-wrap:anywhere}
a{color:var(--link)}.line code{overflow-wrap:anywhere}.bar{width:30%;min-width:90px}
.bar i{display:block;height:12px;margin-top:6px;border-radius:2px;background:var(--link);min-width:1px}
.headline{font-size:19px;line-height:1.4;max-width:60ch;margin:8px 0 12px}
.call{padding:12px 0;border-bottom:1px solid var(--line)}.call p{margin:0 0 4px;max-width:none}
.line{display:flex;gap:8px;align-items:flex-start}code,pre{font:13px/1.5 ui-monospace,"Liberation Mono",monospace}
.line code{flex:1;min-width:0;padding:4px 8px;border-radius:4px;background:var(--raised)}
pre{margin:0;padding:12px;border:1px solid var(--line);border-radius:8px;background:var(--raised);overflow-x:auto}
button{padding:4px 10px;border:1px solid var(--line);border-radius:4px;background:var(--background);color:var(--link);
font:inherit;font-size:13px;cursor:pointer}details{margin:12px 0}summary{cursor:pointer}
.trend{display:block;width:100%;min-width:560px;fill:var(--link)}.trend .grid{stroke:var(--line)}
.trend text{fill:var(--muted);font:12px system-ui,sans-serif}
.worse{color:var(--bad);font-weight:600}.better{color:var(--good);font-weight:600}
.empty{padding:24px;border:1px dashed var(--line);border-radius:8px}
@media (max-width:600px){.bar,.part{display:none}th.n{white-space:normal}h1{font-size:21px}td,th{padding-right:8px}}
"""

SCRIPT = """
for(const button of document.querySelectorAll("button[data-copy]"))button.onclick=async()=>{
const text=button.parentElement.querySelector("code,pre").textContent;
try{await navigator.clipboard.writeText(text)}catch{const area=document.createElement("textarea");area.value=text;
document.body.append(area);area.select();document.execCommand("copy");area.remove()}
button.textContent="copied";setTimeout(()=>button.textContent="copy",1500)};
"""


@dataclass
class Asked:
    """What the report is to show."""

    lake: Path
    output: Path
    metadata: Path | None = None
    by: str | None = None
    before: str | None = None
    after: str | None = None
    user: str | None = None
    #: A column with the time of each call.
    over: str | None = None
    #: Calls whose networks are simulated under other controllers, and these.
    what_if: int | None = None
    controllers: str | None = None
    #: A folder for the reports of the calls that the page shows.
    calls: Path | None = None
    progress: Callable[[int, int], None] | None = None


def write(asked: Asked) -> None:
    """Writes the report of a lake. Raises `WeirError`."""
    import duckdb

    if asked.before is not None and asked.by is None:
        raise WeirError("--before and --after need --by COLUMN")
    for path in (asked.lake, asked.output, asked.metadata, asked.calls):
        if path is not None:
            check_name(path)
    try:
        body = _body(asked)
    except duckdb.Error as error:
        raise WeirError(f"{asked.lake}: {str(error).splitlines()[0]}") from None
    unfinished = asked.output.with_name(f".{asked.output.name}.unfinished")
    try:
        unfinished.write_text(_page(body), encoding="utf-8")
        unfinished.rename(asked.output)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise


def _body(asked: Asked) -> str:
    """What the page shows."""
    db = connect(asked.lake, asked.metadata)
    check_columns(db, [asked.by, asked.user, asked.over])
    total = rows(db, BY_CAUSE)[0]
    parts = [_head(rows(db, TOTALS), _headline(total, rows(db, HEADLINE)), asked)]
    if total["calls"]:
        parts.append(_causes(total, rows(db, MAIN_CAUSES)))
        if asked.over is not None:
            unit = unit_of(db, asked.over)
            parts.append(plot(asked.over, unit, rows(db, query(asked.over, unit))))
        if asked.by is not None:
            parts.append(_columns(asked.by, rows(db, by_column(asked.by))))
        if asked.by is not None and asked.before is not None and asked.after is not None:
            parts.append(_compared(compared(db, asked.by, (asked.before, asked.after), asked.user)))
        pages = None if asked.calls is None else Pages(asked.calls, asked.output)
        first = "Failed connections, then the longest limited time."
        parts.append(_calls("The worst calls", first, rows(db, WORST), pages))
        about = (
            "Of each main cause, the calls whose share of limited time is nearest to that cause's median, "
            "without those above. The cause with the longest limited time comes first."
        )
        parts.append(_calls("Typical calls", about, rows(db, TYPICAL), pages))
        if asked.what_if is not None:
            named = asked.controllers or CONTROLLERS
            parts.append(_what_if(of_calls(db, asked.what_if, named, asked.progress)))
    else:
        parts.append(
            '<p class="empty">No call of this lake could be analyzed, so there is nothing to say about causes. '
            "The dumps that failed are below, if there were any.</p>"
        )
    parts.append(_errors(rows(db, ERRORS)))
    parts.append(_queries(asked))
    return "".join(parts)


def _page(body: str) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>What limited these calls</title><style>{STYLE}</style></head><body><main>{body}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _share(part: float | None, whole: float | None) -> str:
    if not whole:
        return "–"
    return f"{100 * (part or 0.0) / whole:.1f} %"


#: Units of times, the largest first: its seconds, and from how many seconds on it is taken.
UNITS = (("h", 3600, 7200), ("min", 60, 120), ("s", 1, 0))


def _unit(seconds: float) -> tuple[str, int]:
    """The unit for a time, and its seconds."""
    return next((name, length) for name, length, least in UNITS if seconds >= least)


def _time(seconds: float | None) -> str:
    name, length = _unit(seconds or 0.0)
    return f"{(seconds or 0.0) / length:,.0f} {name}"


def _times(part: float, whole: float) -> str:
    """A time of a longer one, in one unit: `1.9 of 5.2 min`."""
    name, length = _unit(whole)
    decimals = 0 if length == 1 else 1
    return f"{part / length:,.{decimals}f} of {whole / length:,.{decimals}f} {name}"


def cut(words: str, most: int) -> str:
    """A text of at most so many letters, cut between two words or, in one long word, anywhere."""
    if len(words) <= most:
        return words
    short = words[: most - 1]
    # A word that is cut off as a whole leaves most of the text.
    between = short.rfind(" ")
    if words[most - 1] != " " and between > most // 2:
        short = short[:between]
    return f"{short.rstrip(' ,;:')}…"


def _headline(total: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """The answer in a sentence: how many calls were limited, and mostly by what."""
    calls = total["calls"]
    if not calls:
        return ""
    limited = sum(row["calls"] for row in found)
    whole = f"{calls:,} call{'s' if calls != 1 else ''}"
    if not limited:
        return f"None of {whole} was limited for {100 * LIMITED:.0f} % of its time or more."
    was = "were" if limited != 1 else "was"
    said = (
        f"{limited:,} of {whole} ({_share(limited, calls)}) {was} limited for {100 * LIMITED:.0f} % "
        "of the time or more, or failed"
    )
    known = [row for row in found if row["main_cause"] in WORDS and row["main_cause"] != "none"]
    if not known:
        return f"{said}."
    first = known[0]
    cause = WORDS[first["main_cause"]][0]
    return f"{said}; in {first['calls']:,} of them the main cause was: {cause}."


def _head(totals: list[dict[str, Any]], headline: str, asked: Asked) -> str:
    of = {row["status"]: row for row in totals}
    good = of.get("analyzed", {"calls": 0, "duration_s": 0.0, "bad_s": 0.0})
    others = ("failed", "duplicate", "no_call")
    counts = {name: of.get(name, {}).get("calls", 0) for name in others}
    facts = [
        (f"{good['calls']:,}", "calls analyzed"),
        (_time(good["duration_s"]), "call time"),
        (_share(good["bad_s"], good["duration_s"]), "of it limited, by any cause"),
        (f"{counts['failed']:,}", "dumps that cannot be read"),
        (f"{counts['duplicate']:,}", "dumps that were there twice"),
        (f"{counts['no_call']:,}", "captures without a call (no RTP)"),
    ]
    items = "".join(f"<li><b>{value}</b><span>{words}</span></li>" for value, words in facts)
    said = f'<p class="headline">{escape(headline)}</p>' if headline else ""
    return (
        f"<h1>What limited these calls</h1>{said}<p class='muted'>{escape(str(asked.lake))}, weir {__version__}</p>"
        f'<ul class="facts">{items}</ul><p>A second is <b>limited</b> if a cause that <code>weir analyze</code> names held in it: '
        "the stream was worse than it could be. People may still have seen a new picture in time: that is "
        "<b>good time</b>, and a call can be both. Two causes may hold in one second, so that their shares may add to "
        "more than the whole.</p>"
    )


def _bar(part: float, largest: float) -> str:
    width = 100 * part / largest if largest else 0.0
    return f'<td class="bar"><i style="width:{width:.1f}%"></i></td>'


def _causes(total: dict[str, Any], main: list[dict[str, Any]]) -> str:
    calls_of = {row["main_cause"]: row["calls"] for row in main}
    found = [(total[f"{cause}_s"] or 0.0, cause) for cause in CAUSES]
    found = sorted((it for it in found if it[0] > 0 or calls_of.get(it[1])), reverse=True)
    if not found:
        return "<h2>Causes</h2><p>Nothing limited any of these calls.</p>"
    largest = max(found[0][0], 1e-9)
    unit, length = _unit(largest)
    decimals = 0 if length == 1 else 1
    body = ""
    for seconds, cause in found:
        words, part = WORDS[cause]
        body += (
            f"<tr><td>{words}</td><td class='part'>{part}</td>{_bar(seconds, largest)}"
            f'<td class="n">{_share(seconds, total["call_time_s"])}</td><td class="n">{seconds / length:,.{decimals}f}</td>'
            f'<td class="n">{_share(calls_of.get(cause, 0), total["calls"])}</td></tr>'
        )
    good = _share(calls_of.get("none", 0), total["calls"])
    return (
        "<h2>Causes</h2><div class='wide'><table><tr><th>cause</th><th class='part'>part</th><th class='bar'></th>"
        "<th class='n'>of call time</th>"
        f"<th class='n'>time, {unit}</th><th class='n'>main cause of calls</th></tr>"
        f"{body}</table></div><p>Nothing limited {good} of the calls.</p>"
    )


def _columns(column: str, found: list[dict[str, Any]]) -> str:
    shown, rest = found[:VALUES_MAX], found[VALUES_MAX:]
    if rest:
        names = [name for name in rest[0] if name != "value"]
        together: dict[str, Any] = {name: sum(row[name] or 0 for row in rest) for name in names}
        shown = [*shown, {"value": f"{len(rest)} others", **together}]
    largest = max(((row["bad_s"] or 0) / (row["call_time_s"] or 1) for row in shown), default=0.0)
    body = ""
    for row in shown:
        whole = row["call_time_s"] or 0.0
        top = sorted(((row[f"{it}_s"] or 0.0, it) for it in CAUSES), reverse=True)[:2]
        said = ", ".join(f"{WORDS[it][0]} ({_share(s, whole)})" for s, it in top if s > 0)
        body += (
            f"<tr><td class='name'>{escape(cut(str(row['value']), NAME_MAX))}</td><td class='n'>{row['calls']:,}</td>"
            f"{_bar((row['bad_s'] or 0) / (whole or 1), largest)}<td class='n'>{_share(row['bad_s'], whole)}</td>"
            f"<td>{said or 'none'}</td></tr>"
        )
    return (
        f"<h2>By {escape(column)}</h2><div class='wide'><table><tr><th>{escape(column)}</th><th class='n'>calls</th>"
        "<th class='bar'></th><th class='n'>limited time</th><th>largest causes, of call time</th></tr>"
        f"{body}</table></div>"
    )


def _compared(it: Compared) -> str:
    before, after = (escape(cut(name, NAME_MAX)) for name in it.names)
    head = f"<h2>{escape(it.column)}: {before} and {after}</h2>"
    what = "users" if it.has_users else "calls, each counted as a user of its own"
    counts = f"{it.calls[0]:,} calls of {it.users[0]:,} {what}; {it.calls[1]:,} of {it.users[1]:,}."
    if not it.changes:
        return f'{head}<p class="empty">{counts} A comparison needs {USERS_MIN} users on each side.</p>'
    body = ""
    for change in it.changes:
        if change.before == change.after == 0:
            continue
        delta = change.after - change.before
        verdict = "no change is shown"
        if change.p <= SIGNIFICANT:
            kind = "worse" if delta > 0 else "better"
            verdict = f'<span class="{kind}">{kind}</span>'
        p = f"{change.p:.4f}" if change.p >= 0.001 else "&lt; 0.001"
        body += (
            f"<tr><td>{WORDS[change.cause][0]}</td><td class='n'>{100 * change.before:.2f} %</td>"
            f"<td class='n'>{100 * change.after:.2f} %</td>"
            f"<td class='n'>{100 * delta:+.2f} ({100 * change.low:+.2f} to {100 * change.high:+.2f})</td>"
            f"<td class='n'>{p}</td><td>{verdict}</td></tr>"
        )
    return (
        f"{head}<p>{counts} Shares of call time that were limited. Intervals (95 %) and p values come from a bootstrap that "
        "draws users with all their calls. Points are percentage points; p of single causes is adjusted for their number (Holm). This compares two "
        "groups of calls: whether the column is the reason, only a fair assignment says.</p><div class='wide'><table>"
        f"<tr><th>cause</th><th class='n'>{before}</th><th class='n'>{after}</th>"
        "<th class='n'>change in points (95 % interval)</th><th class='n'>p</th><th></th></tr>"
        f"{body}</table></div>"
    )


def _calls(title: str, about: str, found: list[dict[str, Any]], pages: Pages | None) -> str:
    if not found:
        return f"<h2>{title}</h2><p>No other call was limited.</p>"
    body = ""
    for row in found:
        share = _share(row["bad_s"], row["duration_s"])
        words = WORDS.get(row["main_cause"], (row["main_cause"], ""))[0]
        good = "" if row["good_ratio"] is None else f", good time {100 * row['good_ratio']:.0f} %"
        body += (
            f'<div class="call"><p><b>{words[:1].upper()}{words[1:]}</b>: '
            f"{_times(row['bad_s'], row['duration_s'])} limited ({share}){good}{_link(row, pages)}</p>"
            f"<p>{escape(cut(row['verdict'] or '', VERDICT_MAX))}</p>"
            f'<div class="line"><code>{escape(command(row["source"]))}</code>'
            '<button type="button" data-copy>copy</button></div></div>'
        )
    links = "Each link opens the report of that call, which the command writes, too."
    if pages is None:
        links = "Each command writes the report of that call; --calls FOLDER writes them all, and links to them."
    return f"<h2>{title}</h2><p>{about} {links}</p>{body}"


def _link(row: dict[str, Any], pages: Pages | None) -> str:
    """The link to a call's own report, or why there is none."""
    if pages is None:
        return ""
    page = pages.of(row["call_id"], row["source"])
    if page.link is None:
        return (
            f" <span class='muted'>no report: {escape(cut(page.why_not or '', VERDICT_MAX))}</span>"
        )
    return f' <a href="{escape(page.link)}">its report</a>'


def _what_if(found: WhatIf) -> str:
    head = "<h2>Would another controller have helped?</h2>"
    if not found.answers:
        why = "No call of this lake was limited by the network or the controller."
        if found.failed:
            why = f"No network could be estimated, for example of {escape(found.failed[0][1])}"
        return f'{head}<p class="empty">{why}</p>'
    first, body = found.controllers[0], ""
    for name in found.controllers:
        middle, good = found.medians(name), found.good_ratio(name)
        better, worse = found.changed(name)
        change = f"{100 * (good - found.good_ratio(first)):+.1f}" if name != first else ""
        counts = f"{better} / {worse}" if name != first else ""
        body += (
            f"<tr><td>{escape(name)}</td><td class='n'>{100 * good:.1f} %</td><td class='n'>{change}</td>"
            f"<td class='n'>{counts}</td><td class='n'>{middle.rate_kbps:.0f}</td>"
            f"<td class='n'>{middle.queuing_delay_ms:.0f}</td></tr>"
        )
    left = f" Of {len(found.failed)} more no network is known." if found.failed else ""
    return (
        f"{head}<p>Simulated, not called: the networks that {len(found.answers)} of the limited calls met, as far as their "
        f"dumps tell, with a simulated browser at both ends.{left} A second is good if a new picture came within 250 ms of its capture. "
        f"A call is better or worse if its share of good time differs by more than {100 * SAME:.0f} points from that under "
        f"{escape(first)}. The method tells a controller that helps much from one that does not, and not more: the guide "
        "has its errors.</p><div class='wide'><table>"
        "<tr><th>controller</th><th class='n'>good time</th><th class='n'>points more</th><th class='n'>calls better / worse</th>"
        "<th class='n'>rate, kbit/s (median)</th><th class='n'>p95 of queuing delay, ms (median)</th></tr>"
        f"{body}</table></div>"
    )


def _errors(found: list[dict[str, Any]]) -> str:
    if not found:
        return ""
    body = "".join(
        f"<tr><td class='n'>{row['calls']:,}</td><td>{escape(cut(row['error'] or '', VERDICT_MAX))}</td>"
        f"<td class='name'>{escape(cut(row['example'], NAME_MAX))}</td></tr>"
        for row in found
    )
    return (
        "<h2>Dumps that cannot be read</h2><div class='wide'><table><tr><th class='n'>dumps</th><th>why</th>"
        f"<th>for example</th></tr>{body}</table></div>"
    )


def _queries(asked: Asked) -> str:
    views = "\n".join(
        f"create view {table} as select * from {text(f'{asked.lake}/{table}/*.parquet')};"
        for table in ("calls", "streams", "findings")
    )
    views += "\ncreate view known as select * from calls;"
    if asked.metadata is not None:
        views = views.replace(
            "create view known as select * from calls;",
            "-- by file names; with a column call_id, join on that\n"
            f"create view known as select * from calls left join read_csv({pattern(asked.metadata)}, all_varchar = true) as given\n"
            "  on given.file in (calls.source, regexp_extract(calls.source, '[^/!]*$'));",
        )
    texts = {
        "The tables": views,
        "Causes": f"{BY_CAUSE};",
        "Main causes": f"{MAIN_CAUSES};",
        "The first sentence": f"{HEADLINE};",
        "The worst calls": f"{WORST};",
        "Typical calls": f"{TYPICAL};",
        "Findings of one call": "select * from findings where call_id = 'CALL' order by rank;",
    }
    if asked.over is not None:
        texts[f"Over {asked.over}"] = f"{query(asked.over, 'day')};"
    if asked.by is not None:
        texts[f"By {asked.by}"] = f"{by_column(asked.by)};"
    body = "".join(
        f"<details><summary>{escape(title)}</summary><div class='line'><pre style='flex:1;min-width:0'>{escape(sql)}</pre>"
        "<button type='button' data-copy>copy</button></div></details>"
        for title, sql in texts.items()
    )
    return (
        "<h2>Ask more</h2><p>These queries made this report. They run in DuckDB (<code>pip install duckdb</code> or its "
        f"own program), and the tables open in whatever reads Parquet.</p>{body}"
    )
