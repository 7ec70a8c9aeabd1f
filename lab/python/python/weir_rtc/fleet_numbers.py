"""What the report of a fleet says in numbers: queries to the tables, and tests that respect users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _weir
from ._weir import WeirError

if TYPE_CHECKING:
    import duckdb
    import numpy

#: Causes in the order of the tables.
CAUSES: list[str] = _weir.fleet_causes()
#: Values of a column that are shown; the others are one row.
VALUES_MAX = 12
#: Calls in the lists of the worst and of the typical ones.
CALLS_SHOWN = 10
#: Draws of the bootstrap, and its seed: one lake gives one report.
DRAWS, SEED = 2000, 1
#: A side of a comparison needs so many users, or chance cannot be told.
USERS_MIN = 5
#: Memory of DuckDB. What does not fit goes to the disk.
MEMORY = "300MB"

SUMS = ",\n  ".join(f"sum(bad_{cause}_s) as {cause}_s" for cause in CAUSES)

TOTALS = """select status, count(*) as calls, sum(duration_s) as duration_s, sum(bad_s) as bad_s
from calls group by status order by status"""

BY_CAUSE = f"""select count(*) as calls, sum(duration_s) as call_time_s, sum(bad_s) as bad_s,
  {SUMS}
from calls where status = 'analyzed'"""

MAIN_CAUSES = """select main_cause, count(*) as calls, median(bad_s / duration_s) as median_bad_ratio
from calls where status = 'analyzed' and duration_s > 0
group by main_cause order by calls desc, main_cause"""

#: A call counts as limited from this share of its time on: less is a moment, such as the start.
LIMITED = 0.1

# For the first sentence: how many calls were limited for long, and which cause was the main one of most of them.
HEADLINE = f"""with long as (
  select main_cause from calls where status = 'analyzed' and (bad_s >= {LIMITED} * duration_s and bad_s > 0 or connection_failed)
)
select main_cause, count(*) as calls from long group by main_cause order by calls desc, main_cause"""

WORST = f"""select call_id, source, main_cause, bad_s, duration_s, good_ratio, verdict
from calls where status = 'analyzed' and (bad_s > 0 or connection_failed)
order by connection_failed desc, bad_s desc, source limit {CALLS_SHOWN}"""

# The calls whose limited share is nearest to the median of their main cause, without those that the list of the worst
# has: first the nearest of each cause, the cause with the most limited time first.
TYPICAL = f"""with worst as ({WORST}), shares as (
  select *, bad_s / duration_s as ratio, median(bad_s / duration_s) over (partition by main_cause) as middle,
    sum(bad_s) over (partition by main_cause) as cause_bad_s
  from calls where status = 'analyzed' and main_cause <> 'none' and duration_s > 0
), ranked as (
  select *, row_number() over (partition by main_cause order by abs(ratio - middle), source) as place from shares
)
select call_id, source, main_cause, bad_s, duration_s, good_ratio, verdict
from ranked where call_id not in (select call_id from worst) order by place, cause_bad_s desc, main_cause limit {CALLS_SHOWN}"""

# The name of the file differs from error to error; what follows it says what is wrong.
ERRORS = """select replace(error, source, 'FILE') as error, count(*) as calls, min(source) as example
from calls where status = 'failed' group by 1 order by calls desc, 1 limit 5"""


def quoted(column: str) -> str:
    """A column's name in SQL. It may come from another person's file."""
    return '"' + column.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"


def pattern(path: Path) -> str:
    """The pattern of DuckDB that means this file and no other, in SQL."""
    return text("".join(f"[{it}]" if it in "*?[" else it for it in str(path)))


def by_column(column: str) -> str:
    """The query of the calls by a column."""
    return f"""select coalesce({quoted(column)}::varchar, 'unknown') as value, count(*) as calls, sum(duration_s) as call_time_s,
  sum(bad_s) as bad_s,
  {SUMS}
from known where status = 'analyzed' group by 1 order by calls desc, value"""


@dataclass
class Change:
    """The share of limited time of one cause, before and after."""

    cause: str
    before: float
    after: float
    low: float
    high: float
    #: Adjusted for the number of causes (Holm).
    p: float


@dataclass
class Compared:
    """Calls with one value of a column, and those with another."""

    column: str
    names: tuple[str, str]
    calls: tuple[int, int]
    users: tuple[int, int]
    changes: list[Change]
    #: Whether the users are known, or each call counts as one.
    has_users: bool


def connect(lake: Path, metadata: Path | None) -> duckdb.DuckDBPyConnection:
    """A connection with the views `calls`, `streams`, `findings` and `known`: calls with their metadata."""
    import duckdb

    from .fleet import TABLES, check_version

    files = sorted((lake / "calls").glob("*.parquet"))
    if not files:
        make = _weir.command_line("weir fleet analyze FILES", [], paths=[("--out", str(lake))])
        raise WeirError(f"{lake} has no table of calls: `{make}`")
    for file in files:
        check_version(file)
    db = duckdb.connect()
    db.execute(f"set memory_limit = '{MEMORY}'")
    parts = {table: [lake / table / file.name for file in files] for table in TABLES}
    for table in TABLES:
        _view(db, table, parts[table])
    if metadata is None:
        db.execute("create view known as select * from calls")
    else:
        _join(db, metadata)
    lock(db, [part for table in TABLES for part in parts[table]])
    return db


def lock(db: duckdb.DuckDBPyConnection, parts: Sequence[Path]) -> None:
    """From here on, no query opens a file other than these, or changes that."""
    # DuckDB asks for the pattern, and then for what it means.
    listed = ", ".join(f"{text(str(part))}, {pattern(part)}" for part in parts)
    db.execute(f"set allowed_paths = [{listed}]")
    db.execute("set python_enable_replacements = false")
    db.execute("set enable_external_access = false")
    db.execute("set lock_configuration = true")


def _view(db: duckdb.DuckDBPyConnection, table: str, parts: Sequence[Path]) -> None:
    """A view of the parts of a table. Columns that are younger than a part are null in it."""
    from .fleet import COLUMNS

    listed = ", ".join(pattern(part) for part in parts)
    source = f"read_parquet([{listed}], union_by_name = true)"
    known = {row[0] for row in db.execute(f"describe select * from {source}").fetchall()}
    younger = "".join(
        f", null::{'double' if kind == 'double' else 'varchar'} as {name}"
        for name, kind in COLUMNS[table].items()
        if name not in known
    )
    db.execute(f"create view {table} as select *{younger} from {source}")


def _join(db: duckdb.DuckDBPyConnection, metadata: Path) -> None:
    import duckdb

    if not metadata.exists():
        # DuckDB would take such a name for a pattern, or for an address.
        raise WeirError(f"{metadata}: no such file")
    try:
        # As text: a release 1.10 is no number.
        db.execute(
            f"create table given as select * from read_csv({pattern(metadata)}, header = true, all_varchar = true)"
        )
    except duckdb.Error as error:
        raise WeirError(f"{metadata}: {str(error).splitlines()[0]}") from None
    columns = [row[0] for row in db.execute("describe given").fetchall()]
    if "call_id" in columns:
        key = "call_id"
    elif "file" in columns:
        # A path, or what follows its last slash.
        key = "file"
    else:
        raise WeirError(f"{metadata} has neither a column `file` nor `call_id`")
    twice = db.execute(
        f"select {key} from given group by 1 having count(*) > 1 order by 1 limit 1"
    ).fetchone()
    if twice is not None:
        raise WeirError(f"{metadata} has two rows of {twice[0]}")
    # In SQL, names that differ in capital letters alone are the same.
    taken = {row[0].casefold() for row in db.execute("describe calls").fetchall()}
    more = "".join(f", given.{quoted(it)}" for it in columns if it.casefold() not in taken)
    if key == "file":
        # One pass for each form of the name, so that both are hash joins.
        db.execute(
            "create temp view named as select calls.*, coalesce(whole.file, last.file) as given_file from calls "
            "left join given as whole on whole.file = calls.source "
            "left join given as last on last.file = regexp_extract(calls.source, '[^/!]*$')"
        )
        db.execute(
            f"create temp view known as select named.* exclude (given_file){more} "
            "from named left join given on given.file = named.given_file"
        )
        return
    db.execute(
        f"create temp view known as select calls.*{more} from calls "
        "left join given on calls.call_id = given.call_id"
    )


def check_columns(db: duckdb.DuckDBPyConnection, columns: Sequence[str | None]) -> None:
    """Raises `WeirError` for a column that the calls lack."""
    known = [row[0] for row in db.execute("describe known").fetchall()]
    for column in columns:
        if column is not None and column not in known:
            raise WeirError(f"no column {column}: there are {', '.join(known)}")


def rows(db: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """The rows of a query by the names of its columns."""
    answer = db.execute(query)
    names = [it[0] for it in answer.description or []]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def compared(
    db: duckdb.DuckDBPyConnection, column: str, names: tuple[str, str], user: str | None
) -> Compared:
    """Compares the share of limited time of the calls with two values of a column."""
    import numpy

    who = "source" if user is None else f"coalesce({quoted(user)}::varchar, source)"
    sums = ", ".join(f"sum(bad_{cause}_s)" for cause in CAUSES)
    found = []
    for name in names:
        query = (
            f"select {who} as who, count(*), sum(duration_s), sum(bad_s), {sums} from known "
            f"where status = 'analyzed' and {quoted(column)}::varchar = $1 group by 1 order by 1"
        )
        of_users = db.execute(query, [name]).fetchall()
        if not of_users:
            raise WeirError(f"no call has {column} = {name}")
        found.append(of_users)
    number = {who: index for index, who in enumerate(sorted({it[0] for it in found[0] + found[1]}))}
    sides = []
    for of_users in found:
        side = numpy.zeros((len(number), len(of_users[0]) - 2))
        for who, _calls, *values in of_users:
            side[number[who]] = values
        sides.append(side)
    calls = tuple(sum(it[1] for it in of_users) for of_users in found)
    users = (len(found[0]), len(found[1]))
    changes = _changes(sides[0], sides[1]) if min(users) >= USERS_MIN else []
    return Compared(column, names, (calls[0], calls[1]), users, changes, user is not None)


def _ratios(sums: numpy.ndarray) -> numpy.ndarray:
    """Limited time over call time, of all causes together and of each."""
    import numpy

    return sums[..., 1:] / numpy.maximum(sums[..., :1], 1e-9)


def _changes(before: numpy.ndarray, after: numpy.ndarray) -> list[Change]:
    """Differences with intervals and p values of a bootstrap that draws users with all of their calls.

    Rows are users of either side. A user of both sides is drawn with both, so that what is common to them cancels.
    """
    import numpy

    draw = numpy.random.default_rng(SEED)
    count = len(before)
    together = numpy.hstack([before, after])
    differences = numpy.empty((DRAWS, before.shape[1] - 1))
    for index in range(DRAWS):
        weights = numpy.bincount(draw.integers(0, count, count), minlength=count)
        both = weights @ together
        differences[index] = _ratios(both[before.shape[1] :]) - _ratios(both[: before.shape[1]])
    first, last = _ratios(before.sum(axis=0)), _ratios(after.sum(axis=0))
    change = last - first
    # How often chance alone, which has no change on average, moves as far.
    chance = numpy.abs(differences - differences.mean(axis=0))
    further = (chance >= numpy.abs(change) - 1e-12).sum(axis=0)
    p = (further + 1) / (DRAWS + 1)
    low, high = numpy.percentile(differences, [2.5, 97.5], axis=0)
    adjusted = numpy.concatenate([p[:1], _holm(p[1:])])
    names = ["all causes", *CAUSES]
    made = zip(names, first, last, low, high, adjusted, strict=True)
    return [Change(name, *(float(it) for it in values)) for name, *values in made]


def _holm(p: numpy.ndarray) -> numpy.ndarray:
    """p values for several causes at once."""
    import numpy

    order = numpy.argsort(p)
    scaled = p[order] * (len(p) - numpy.arange(len(p)))
    result = numpy.empty(len(p))
    result[order] = numpy.minimum(1.0, numpy.maximum.accumulate(scaled))
    return result
