"""The ledger's tables and the migrations that lead to them.

``pragma user_version`` counts the migrations applied. Each runs in its own transaction, after a
``VACUUM INTO`` copy of the ledger into ``backups/``. A ledger with a higher number than this code
knows is refused: an older memoryd must not write what a newer one laid out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from memoryd.memory import last_ran
from memoryd.memory.errors import LedgerNewer
from memoryd.memory.files import FILE_MODE, make_directory, sync_directory, temporary_name

if TYPE_CHECKING:
    from peewee import SqliteDatabase

# Small tables are ``without rowid``: one page less to write in every commit that touches them.
_FIRST = """
create table job (
    id text primary key,
    home text not null,
    kind text not null,
    idempotency_key text unique,
    serial_key text not null,
    project text,
    agent text not null,
    session text not null,
    trigger text not null,
    reason text not null,
    cutoff bigint not null,
    payload text not null,
    priority integer not null,
    status text not null check (status in
        ('pending', 'running', 'completed', 'failed', 'cancelled')),
    run_at bigint not null,
    wait_reason text,
    attempt integer not null default 0,
    failures integer not null default 0,
    crashes integer not null default 0,
    max_failures integer not null,
    snoozes integer not null default 0,
    slice_first bigint,
    slice_last bigint,
    lease_owner text,
    lease_expires_at bigint,
    outcome_code text,
    error_code text,
    error_detail text,
    created_at bigint not null,
    updated_at bigint not null,
    started_at bigint,
    finished_at bigint
);
create index job_ready on job (priority, run_at, id) where status = 'pending';
create unique index job_serial on job (serial_key) where status = 'running';
create index job_lease on job (lease_expires_at) where status = 'running';
create index job_finished on job (finished_at) where finished_at is not null;
create index job_session on job (agent, session);
create unique index job_extract on job (kind, agent, session)
    where status = 'pending' and kind = 'extract';

create table attempt_log (
    job_id text not null,
    attempt integer not null,
    owner text not null,
    started_at bigint not null,
    ended_at bigint,
    ending text,
    detail text,
    calls integer not null default 0,
    input_tokens bigint not null default 0,
    output_tokens bigint not null default 0,
    primary key (job_id, attempt)
) without rowid;

create table plan (
    serial_key text primary key,
    job_id text not null,
    attempt integer not null,
    agent text not null,
    session text not null,
    first bigint not null,
    last bigint not null,
    plan text not null,
    recorded_at bigint not null
);
create index plan_job on plan (job_id);

create table cursor (
    agent text not null,
    session text not null,
    seq bigint not null,
    updated_at bigint not null,
    primary key (agent, session)
) without rowid;

create table candidate (
    id text primary key,
    job_id text not null,
    agent text not null,
    session text not null,
    first bigint not null,
    last bigint not null,
    ordinal integer not null,
    statement text not null,
    category text not null,
    explicitness text not null,
    sensitivity text not null,
    confidence double precision not null,
    evidence text not null,
    risk text not null,
    decision text not null check (decision in ('apply', 'review', 'ignore')),
    reason text not null,
    detail text not null,
    state text not null,
    store text,
    path text,
    created_at bigint not null
);
create index candidate_job on candidate (job_id, first, ordinal);
create index candidate_planned on candidate (agent, session, first) where state = 'planned';

create table rollout (
    agent text not null,
    session text not null,
    transcript text not null,
    cwd text not null,
    last_cutoff bigint not null,
    excluded text,
    throttled integer not null default 0,
    seen_at bigint not null,
    primary key (agent, session)
) without rowid;

create table budget (
    day text not null,
    provider text not null,
    calls bigint not null,
    tokens bigint not null,
    primary key (day, provider)
) without rowid;

create table breaker (
    provider text primary key,
    state text not null check (state in ('open', 'stopped')),
    strikes integer not null,
    until bigint not null,
    reason text not null,
    detail text not null,
    since bigint not null
);
"""

_SECOND = """
alter table candidate add column draft text;
create index candidate_pending on candidate (store, created_at) where state = 'pending';
create index candidate_note on candidate (store, path);

alter table rollout add column extracts integer not null default 0;

create table injection (
    id text primary key,
    agent text not null,
    session text not null,
    store text not null,
    note text not null,
    message text not null,
    shown_at bigint not null,
    used_at bigint
);
create unique index injection_shown on injection (agent, session, message, store, note);
create index injection_session on injection (agent, session, note);

create table usage (
    store text not null,
    note text not null,
    shown bigint not null default 0,
    used bigint not null default 0,
    last_used_at bigint not null default 0,
    primary key (store, note)
) without rowid;

create table event (
    id integer primary key,
    at bigint not null,
    kind text not null,
    body text not null
);

create table consolidation (
    store text primary key,
    last_run_at bigint not null default 0,
    outcome text,
    looked_at bigint not null default 0,
    empty_runs integer not null default 0
) without rowid;
"""

_THIRD = """
alter table rollout add column fingerprint text;
alter table rollout add column size bigint not null default 0;
alter table rollout add column at_most bigint not null default 0;
alter table rollout add column active_at bigint not null default 0;
alter table rollout add column project text;
alter table rollout add column kind text not null default 'root';
alter table rollout add column found_at bigint not null default 0;
alter table rollout add column made_fingerprint text;
alter table rollout add column mined_fingerprint text;
alter table rollout add column hook_at bigint not null default 0;
alter table rollout add column hook_end_at bigint not null default 0;
alter table rollout add column sweep_at bigint not null default 0;

create table backfill (
    id integer primary key check (id = 1),
    state text not null check (state in ('started', 'paused')),
    since bigint not null
);

create table backfill_day (
    day text primary key,
    sessions integer not null
) without rowid;

alter table budget add column cost bigint not null default 0;
alter table budget add column backfill_calls bigint not null default 0;
alter table budget add column backfill_tokens bigint not null default 0;
alter table budget add column backfill_cost bigint not null default 0;
"""

_FOURTH = """
create table daily_run (
    id integer primary key,
    name text not null,
    day text not null,
    at bigint not null
);
create unique index daily_run_day on daily_run (name, day);
"""

# What status counts is in the index whole: no row of a million is looked at.
_FIFTH = """
create index job_ended on job (status, kind, finished_at) where finished_at is not null;
create index attempt_ended on attempt_log (ended_at, ending, calls, input_tokens, output_tokens)
    where ended_at is not null;
"""

# An index costs every job a page or two in each of its commits. Few jobs run at a time; what ended
# of late is found by the jobs it was of; one index serves all that is asked of finished jobs.
_SIXTH = """
drop index job_lease;
drop index attempt_ended;
drop index job_finished;
drop index job_ended;
create index job_ended on job (status, finished_at, kind) where finished_at is not null;
"""

#: One script a migration, applied in order; never changed once released.
MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH, _SIXTH)


#: In the ledger's ``pragma application_id`` until it was told what the stores' histories know of
#: (``recovering.py``): it is new, or older than the memory.
TO_RECOVER = 0x6D656D31


def is_current(database: SqliteDatabase) -> bool:
    """Whether the open ledger has the newest schema, and nothing is to be told to it first."""
    version = int(database.execute_sql("pragma user_version").fetchone()[0])
    told = int(database.execute_sql("pragma application_id").fetchone()[0]) != TO_RECOVER
    return version == len(MIGRATIONS) and told


def migrate(database: SqliteDatabase, backups: Path, now_ms: int) -> None:
    """Bring the open ledger to the newest schema. Raises ``LedgerError`` for a newer one."""
    version = int(database.execute_sql("pragma user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise LedgerNewer(
            f"the ledger has schema {version}, this memoryd knows {len(MIGRATIONS)}",
            hint=f"upgrade memoryd{last_ran.as_words(backups.parent)}; nothing was changed",
        )
    if version == len(MIGRATIONS):
        return
    if version:
        _back_up(database, backups, version, now_ms)
    for number in range(version, len(MIGRATIONS)):
        with database.atomic("IMMEDIATE"):
            # Another process may have migrated while this one waited for the write lock.
            if int(database.execute_sql("pragma user_version").fetchone()[0]) > number:
                continue
            for statement in MIGRATIONS[number].split(";"):
                if statement.strip():
                    database.execute_sql(statement)
            if not number:
                database.execute_sql(f"pragma application_id = {TO_RECOVER}")
            database.execute_sql(f"pragma user_version = {number + 1}")


def copies(backups: Path) -> list[Path]:
    """The copies of the ledger that are there, the newest first by when they were made."""
    found = [each for each in backups.glob("memoryd-*.sqlite") if each.is_file()]
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def _back_up(database: SqliteDatabase, backups: Path, version: int, now_ms: int) -> None:
    """A whole copy or none: one that was cut short must not stand among those that are."""
    make_directory(backups)
    copy = backups / f"memoryd-schema{version}-{now_ms}-{os.getpid()}.sqlite"
    temporary = copy.with_name(temporary_name(copy.name))
    try:
        database.execute_sql("vacuum into ?", (str(temporary),))
        keep_copy(temporary, copy)
    except BaseException:  # passed on: no half copy stays
        temporary.unlink(missing_ok=True)
        raise


def keep_copy(temporary: Path, copy: Path) -> None:
    """Have a copy that was written under another name be on disk, the owner's, and found."""
    temporary.chmod(FILE_MODE)
    descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(copy)
    sync_directory(copy.parent)
