"""The text of every statement that changes a job, by name; each says what guards it.

The dialect is what SQLite and PostgreSQL share, statuses are literals (a bound status costs the
planner its partial index), times are bound wall milliseconds. Each statement is a compare-and-set:
its row count tells whether it won.
"""

from __future__ import annotations

from collections.abc import Mapping

from memoryd.jobs.job import COLUMNS, KINDS

#: What only the attempt that holds the lease may touch.
_FENCE = "id = :id and attempt = :attempt and status = 'running'"

#: A lease is over when its time has come, or when it ends further ahead than any lease is given
#: for: then the clock was stepped back under it. One that never ends, or at no time, is over too.
_EXPIRED = (
    "(lease_expires_at is null or lease_expires_at <= :now or lease_expires_at > :lease_horizon)"
)

#: The same for the time a job waits for: at most 25 hours ahead is meant.
_DUE = "(run_at <= :now or run_at > :run_horizon)"

_KINDS = ", ".join(f"'{kind}'" for kind in sorted(KINDS))
#: Kinds that this version can work; one that a newer version made waits for a newer version.
_KNOWN = f"kind in ({_KINDS})"

_MAKE = """
insert into job (id, home, kind, idempotency_key, serial_key, project, agent, session, trigger,
    reason, cutoff, payload, priority, status, run_at, max_failures, created_at, updated_at)
values (:id, :home, :kind, :idempotency_key, :serial_key, :project, :agent, :session, :trigger,
    :reason, :cutoff, :payload, :priority, 'pending', :now, :max_failures, :now, :now)
"""

#: Makes a job; guard: its idempotency key is new.
INSERT = f"""{_MAKE}
on conflict (idempotency_key) do nothing
"""

#: Asks again for a finalize that ended without reading what it was made for. Guard: it ended so,
#: for whoever asks when its transcript was gone, for a person also when a setting had said no.
REOPEN = """
update job set status = 'pending', trigger = :trigger, reason = :reason, run_at = :now,
    failures = 0, crashes = 0, snoozes = 0, outcome_code = null, finished_at = null,
    updated_at = :now
where idempotency_key = :key and status = 'completed'
    and (outcome_code = 'transcript.gone' or (:asked = 1 and outcome_code in
        ('extraction.off', 'curation.manual', 'curation.session-end-off')))
"""

#: Nothing of the session's transcript was read after all.
UNREAD = "update rollout set last_cutoff = 0 where agent = :agent and session = :session"

#: Makes an extract, or lets the one pending for the session read further. Guard: its uniqueness.
INSERT_EXTRACT = f"""{_MAKE}
on conflict (kind, agent, session) where status = 'pending' and kind = 'extract'
do update set
    cutoff = case when excluded.cutoff > job.cutoff then excluded.cutoff else job.cutoff end,
    reason = case when job.trigger = 'cli' or job.reason = 'compact' then job.reason
        else excluded.reason end,
    trigger = case when job.trigger = 'cli' then job.trigger else excluded.trigger end,
    payload = excluded.payload, updated_at = excluded.updated_at
returning {COLUMNS}
"""

#: Remembers a session's transcript, and who told of it; says whether it is excluded.
SEE_ROLLOUT = """
insert into rollout (agent, session, transcript, cwd, last_cutoff, seen_at, hook_at, hook_end_at,
    sweep_at)
values (:agent, :session, :transcript, :cwd, :cutoff, :now, :hook_at, :hook_end_at, :sweep_at)
on conflict (agent, session) do update set
    transcript = case when excluded.transcript = '' then rollout.transcript
        else excluded.transcript end,
    cwd = case when excluded.cwd = '' then rollout.cwd else excluded.cwd end,
    last_cutoff = case when excluded.last_cutoff > cast(rollout.last_cutoff as bigint)
        then excluded.last_cutoff else rollout.last_cutoff end,
    seen_at = excluded.seen_at,
    hook_at = case when excluded.hook_at > 0 then excluded.hook_at else rollout.hook_at end,
    hook_end_at = case when excluded.hook_end_at > 0 then excluded.hook_end_at
        else rollout.hook_end_at end,
    sweep_at = case when excluded.sweep_at > 0 then excluded.sweep_at else rollout.sweep_at end
returning excluded
"""

#: Never distils a session; guard: no person had it forgotten, which says more.
EXCLUDE = """
update rollout set excluded = :code where agent = :agent and session = :session
    and (excluded is null or excluded <> 'session.forgotten')
"""

_ANY_EXPIRED = f"exists (select 1 from job where status = 'running' and {_EXPIRED})"

#: Whether anything is due, and whether a lease is over: asked before the write lock is taken.
ANY_DUE = f"""
select exists (select 1 from job where status = 'pending' and {_DUE}), {_ANY_EXPIRED}
"""

#: The same of one job; a lease that is over may be what keeps it from running.
THIS_DUE = f"""
select exists (select 1 from job where id = :id and status = 'pending' and {_DUE}), {_ANY_EXPIRED}
"""

#: Whether a job runs or is due, in one statement: between two it could go from one to the other.
#: Backfill aside, which goes on for days.
ANY_BUSY = f"""
select 1 where exists (select 1 from job
        where status = 'pending' and kind <> 'backfill' and {_KNOWN} and {_DUE})
    or exists (select 1 from job where status = 'running' and kind <> 'backfill')
"""

#: The first of those whose serial key is free; a backfill only while fewer than ``room`` run.
_HEAD = f"""
select id from job
where status = 'pending' and {_DUE} and {_KNOWN} and not exists (select 1 from job other
    where other.status = 'running' and other.serial_key = job.serial_key)
    and (kind <> 'backfill'
        or :room > (select count(*) from job busy where busy.status = 'running'))
order by priority, run_at, id limit 1
"""

_TAKE = """
update job set status = 'running', attempt = attempt + 1, lease_owner = :owner,
    lease_expires_at = :lease_expires_at, wait_reason = null, started_at = :now,
    updated_at = :now
"""

#: A job that crashed runs alone. At the head it holds the others back until it can: else a long
#: queue would keep it waiting for ever.
_ALONE = """
not exists (select 1 from job other where other.status = 'running'
    and (other.crashes > 0 or job.crashes > 0))
"""

#: Takes the head; guard: it is pending and due, its serial key is free, and it may run beside what
#: runs. The unique index on the serial key of running jobs decides between two that got here
#: together.
CLAIM = f"""{_TAKE}
where id = ({_HEAD}) and status = 'pending' and {_ALONE}
returning {COLUMNS}
"""

#: Takes one given job, under the same guard.
CLAIM_THIS = f"""{_TAKE}
where id = :id and status = 'pending' and {_DUE} and {_KNOWN} and {_ALONE} and not exists (
    select 1 from job other where other.status = 'running' and other.serial_key = job.serial_key)
returning {COLUMNS}
"""

#: Whether a claim would take anything now, backfill aside, which has rules of its own.
CLAIMABLE = f"select 1 from job where id = ({_HEAD}) and {_ALONE}".replace(":room", "0")

#: When the next job falls due, or the next lease is over; those that were due before aside.
NEXT_DUE = f"""
select min(due) from (
    select min(run_at) as due from job
        where status = 'pending' and run_at > :now and run_at <= :run_horizon
    union all select min(case when {_EXPIRED} then :now else lease_expires_at end) from job
        where status = 'running') as soon
"""

#: Jobs of a kind that this version does not know, and that do not say so yet.
UNKNOWN_KIND = f"""
select 1 from job where status = 'pending' and not {_KNOWN}
    and (wait_reason is null or wait_reason <> 'kind.unknown') limit 1
"""

#: They wait for a version that knows them, and say so.
WAIT_FOR_VERSION = f"""
update job set wait_reason = 'kind.unknown', updated_at = :now
where status = 'pending' and not {_KNOWN}
    and (wait_reason is null or wait_reason <> 'kind.unknown')
"""

#: This version knows them.
KNOWN_KIND = f"""
update job set wait_reason = null, updated_at = :now
where status = 'pending' and {_KNOWN} and wait_reason = 'kind.unknown'
"""

#: Writes the attempt's line in the log: at its end, for while it runs the job's row says all of it.
#: Also where a call was counted in it, or a line that no claim made has its number.
END_ATTEMPT = """
insert into attempt_log (job_id, attempt, owner, started_at, ended_at, ending, detail)
values (:id, :attempt, coalesce(:owner, ''), coalesce(:started_at, :now), :now, :ending, :detail)
on conflict (job_id, attempt) do update set owner = excluded.owner,
    started_at = excluded.started_at, ended_at = excluded.ended_at, ending = excluded.ending,
    detail = excluded.detail
"""

#: Counts a call in the attempt's line. Guard: the job is there; not the fence, for an attempt that
#: lost its lease has spent the call all the same.
COUNT_CALL = """
insert into attempt_log (job_id, attempt, owner, started_at, calls, input_tokens, output_tokens)
select id, :attempt, coalesce(:owner, ''), coalesce(:started_at, :now), 1, :input, :output
from job where id = :id
on conflict (job_id, attempt) do update set calls = attempt_log.calls + 1,
    input_tokens = attempt_log.input_tokens + excluded.input_tokens,
    output_tokens = attempt_log.output_tokens + excluded.output_tokens
"""

#: Extends the lease; guard: the fence.
HEARTBEAT = f"""
update job set lease_expires_at = :lease_expires_at, updated_at = :now where {_FENCE}
"""

#: Running jobs whose lease is over, or all of them; a bounded batch.
EXPIRED = f"""
select {COLUMNS} from job where status = 'running' and (:all = 1 or {_EXPIRED}) limit :batch
"""

#: Returns one of them, or gives it up; guard: the fence, and the lease is still the one seen.
RESCUE = f"""
update job set status = :status, failures = failures + 1, crashes = crashes + 1,
    error_code = 'attempt.crashed', error_detail = :detail, run_at = :run_at,
    lease_owner = null, lease_expires_at = null, updated_at = :now, finished_at = :finished_at
where {_FENCE} and (lease_expires_at = :seen_lease
    or (lease_expires_at is null and :seen_lease is null))
"""

#: Runs it later at no cost; guard: the fence.
SNOOZE = f"""
update job set status = 'pending', run_at = :run_at, wait_reason = :reason, error_detail = :detail,
    snoozes = snoozes + 1, lease_owner = null, lease_expires_at = null, updated_at = :now
where {_FENCE}
"""

#: Gives it back untouched, its place in the order included; guard: the fence.
RELEASE = f"""
update job set status = 'pending', lease_owner = null, lease_expires_at = null, updated_at = :now
where {_FENCE}
"""

#: Calls off the extract that waits for the session of one about to wait again, which takes over
#: what was asked. Guard: it is another.
ABSORB = """
update job set status = 'cancelled', outcome_code = 'job.merged', wait_reason = null,
    updated_at = :now, finished_at = :now
where kind = 'extract' and agent = :agent and session = :session and status = 'pending'
    and id <> :id
returning id, cutoff, trigger, reason, payload
"""

#: The plan it recorded is the other's to settle. Guard: it is its own.
ABSORB_PLAN = "update plan set job_id = :id where job_id = :absorbed"

#: Takes it over; guard: an extract.
GROW = """
update job set cutoff = case when :cutoff > cutoff then :cutoff else cutoff end,
    reason = case when trigger = 'cli' or reason = 'compact' then reason else :reason end,
    trigger = case when trigger = 'cli' then trigger else :trigger end, payload = :payload
where id = :id and kind = 'extract'
"""

#: Counts a failure; ``status`` is pending (retry at ``run_at``) or failed. Guard: the fence.
FAIL = f"""
update job set status = :status, failures = failures + 1, error_code = :code,
    error_detail = :detail, run_at = :run_at, lease_owner = null, lease_expires_at = null,
    updated_at = :now, finished_at = :finished_at
where {_FENCE}
"""

#: Notes the slice being worked and the project; guard: the fence.
BEGIN_SLICE = f"""
update job set slice_first = :first, slice_last = :last, project = :project, updated_at = :now
where {_FENCE}
"""

#: A slice is done and the job is not: it got somewhere. Guard: the fence.
PROGRESS = f"""
update job set snoozes = 0, slice_first = null, slice_last = null, updated_at = :now where {_FENCE}
"""

#: Ends it; guard: the fence.
COMPLETE = f"""
update job set status = 'completed', outcome_code = :outcome, error_code = null,
    error_detail = null, wait_reason = null, snoozes = 0, slice_first = null, slice_last = null,
    lease_owner = null, lease_expires_at = null, updated_at = :now, finished_at = :now
where {_FENCE}
"""

#: Removes a throttled extract, which leaves no row; guard: the fence.
FORGET = f"delete from job where {_FENCE}"

#: Counts an extract in its session's row; guard: its first call was counted just now.
COUNT_EXTRACT = """
update rollout set extracts = extracts + 1
where agent = :agent and session = :session
    and (select sum(calls) from attempt_log where job_id = :id) = 1
"""

#: Calls it off; guard: not finished, and no plan of its own stands (then it is being written).
CANCEL = """
update job set status = 'cancelled', outcome_code = :code, wait_reason = null, lease_owner = null,
    lease_expires_at = null, updated_at = :now, finished_at = :now
where id = :id and status in ('pending', 'running')
    and not exists (select 1 from plan where plan.job_id = job.id)
"""

#: The attempt that works a job, where one does.
AT_WORK = f"select {COLUMNS} from job where id = :id and status = 'running'"

#: Whether a person may ask again.
ENDED_BADLY = "select 1 from job where id = :id and status in ('failed', 'cancelled')"

#: A person asks again; guard: failed or cancelled.
RETRY = """
update job set status = 'pending', failures = 0, crashes = 0, snoozes = 0, run_at = :now,
    wait_reason = null, outcome_code = null, error_code = null, error_detail = null,
    finished_at = null, slice_first = null, slice_last = null, updated_at = :now
where id = :id and status in ('failed', 'cancelled')
"""

#: Wakes the jobs that wait for a provider; guard: pending with such a reason.
WAKE = """
update job set run_at = :now, updated_at = :now
where status = 'pending' and run_at > :now and (run_at <= :until or run_at = :next)
    and wait_reason in
    ('provider.unavailable', 'provider.limited', 'provider.permanent', 'provider.busy')
"""

#: Wakes the jobs that wait for one reason; guard: pending with it.
WAKE_WAITING = """
update job set run_at = :now, updated_at = :now
where status = 'pending' and wait_reason = :reason and run_at > :now
"""

#: Says whom not to ask.
KEEP_BREAKER = """
insert into breaker (provider, state, strikes, until, reason, detail, since)
values (:provider, :state, :strikes, :until, :reason, :detail, :since)
on conflict (provider) do update set state = excluded.state, strikes = excluded.strikes,
    until = excluded.until, reason = excluded.reason, detail = excluded.detail,
    since = excluded.since
"""

#: How a job can have ended.
FINISHED = ("completed", "cancelled", "failed")

_OF_STATUS = " union all ".join(
    f"select finished_at, id from job where status = '{status}' and :{status} = 1"
    " and finished_at is not null"
    for status in FINISHED
)

#: The newest of those of the named statuses that does not stay.
NEWEST_PRUNED = f"""
select finished_at, id from ({_OF_STATUS}) as finished
order by finished_at desc, id desc limit 1 offset :keep
"""

_PRUNED = """
status = '{status}' and finished_at is not null
    and (finished_at, id) > (:low_at, :low_id) and (finished_at, id) <= (:high_at, :high_id)
    and finished_at < :before and not exists (select 1 from plan where plan.job_id = job.id)
"""

#: How many would go, by their status.
COUNT_PRUNED: Mapping[str, str] = {
    status: f"select count(*) from job where {_PRUNED.format(status=status)}" for status in FINISHED
}

#: Deletes the oldest of one status, a bounded batch; guard: finished, and no plan of it is to be
#: settled.
PRUNE: Mapping[str, str] = {
    status: f"""
delete from job where id in (
    select id from job where {_PRUNED.format(status=status)} order by finished_at, id limit :batch)
returning id, finished_at
"""
    for status in FINISHED
}

#: Moves the cursor of a session on for the first time; guard: there is none, or it stands at 0.
SET_CURSOR = """
insert into cursor (agent, session, seq, updated_at) values (:agent, :session, :last, :now)
on conflict (agent, session) do update set seq = excluded.seq, updated_at = excluded.updated_at
    where cursor.seq = 0
"""

#: Moves the cursor on; guard: it stands where the slice began.
MOVE_CURSOR = """
update cursor set seq = :last, updated_at = :now
where agent = :agent and session = :session and seq = :before
"""

#: Keeps a plan; guard: none stands for the serial key.
KEEP_PLAN = """
insert into plan (serial_key, job_id, attempt, agent, session, first, last, plan, recorded_at)
values (:serial_key, :id, :attempt, :agent, :session, :first, :last, :plan, :now)
on conflict (serial_key) do nothing
"""

#: What the stores' histories say was written of a plan that cannot be read.
WRITTEN_AS_PLANNED = """
update candidate set state = 'applied', draft = null
where agent = :agent and session = :session and state = 'planned' and last <= :last
"""

#: What waits of such a plan and is found again when its slice, or its store, is read again.
DROP_CANDIDATES = """
delete from candidate where state in ('planned', 'pending') and (
    (:agent <> '' and agent = :agent and session = :session and first > :cursor)
    or (:agent = '' and agent = '' and session in (
        select job_id from plan where serial_key = :serial_key)))
"""

#: Whether a job of the serial key runs.
WORKED = "select 1 from job where status = 'running' and serial_key = :serial_key"

#: Whether the attempt still holds its job: the fence alone.
HELD = f"select 1 from job where {_FENCE}"

#: Books a call; guard: the day's calls, tokens and money allow it (a bound of 0 money: none).
RESERVE = """
update budget set calls = calls + 1, tokens = tokens + :tokens, cost = cost + :cost
where day = :day and provider = :provider
    and calls + 1 <= :max_calls and tokens + :tokens <= :max_tokens
    and (:max_cost = 0 or cost + :cost <= :max_cost)
"""

#: Books one for a backfill; guard: the same of its share of what the day's other work left.
RESERVE_BACKFILL = """
update budget set calls = calls + 1, tokens = tokens + :tokens, cost = cost + :cost,
    backfill_calls = backfill_calls + 1, backfill_tokens = backfill_tokens + :tokens,
    backfill_cost = backfill_cost + :cost
where day = :day and provider = :provider
    and backfill_calls + 1 <= :share * (:max_calls - (calls - backfill_calls))
    and backfill_tokens + :tokens <= :share * (:max_tokens - (tokens - backfill_tokens))
    and (:max_cost = 0
        or backfill_cost + :cost <= :share * (:max_cost - (cost - backfill_cost)))
"""

#: Replaces what was booked by what was spent, of the backfill's too where :backfill is 1.
SETTLE = """
update budget set tokens = case when tokens - :tokens + :spent > 0
        then tokens - :tokens + :spent else 0 end,
    cost = case when cost - :cost + :paid > 0 then cost - :cost + :paid else 0 end,
    backfill_tokens = case when backfill_tokens + :backfill * (:spent - :tokens) > 0
        then backfill_tokens + :backfill * (:spent - :tokens) else 0 end,
    backfill_cost = case when backfill_cost + :backfill * (:paid - :cost) > 0
        then backfill_cost + :backfill * (:paid - :cost) else 0 end
where day = :day and provider = :provider
"""

#: Lets one job through an open breaker; guard: its time has come (the next one is then later).
PROBE = """
update breaker set until = :next
where provider = :provider and state = 'open' and (until <= :now or until > :horizon)
"""

#: Says that a note was shown; guard: not said before of this message.
SHOW = """
insert into injection (id, agent, session, store, note, message, shown_at)
values (:id, :agent, :session, :store, :note, :message, :now)
on conflict (agent, session, message, store, note) do nothing
"""

COUNT_SHOWN = """
insert into usage (store, note, shown) values (:store, :note, 1)
on conflict (store, note) do update set shown = usage.shown + 1
"""

#: Of each store the newest injection of a note in a session, up to a time, where nobody has
#: credited it.
UNCREDITED = """
select id from injection
where agent = :agent and session = :session and note = :note and shown_at <= :at
    and used_at is null and not exists (select 1 from injection later
        where later.agent = :agent and later.session = :session and later.note = :note
            and later.store = injection.store and later.shown_at <= :at
            and (later.shown_at > injection.shown_at
                or (later.shown_at = injection.shown_at and later.id > injection.id)))
"""

#: Credits them; guard: still nobody has.
CREDIT = f"""
update injection set used_at = :at where used_at is null and id in ({UNCREDITED})
returning store
"""

COUNT_USED = """
insert into usage (store, note, used, last_used_at) values (:store, :note, 1, :at)
on conflict (store, note) do update set used = usage.used + 1,
    last_used_at = case when :at > usage.last_used_at then :at else usage.last_used_at end
"""

FORGET_USAGE = "delete from usage where store = :store and note = :note"

FORGET_INJECTIONS = "delete from injection where store = :store and note = :note"

#: Adds one note's counters to another's.
RENAME_USAGE = """
insert into usage (store, note, shown, used, last_used_at)
select store, :new, shown, used, last_used_at from usage where store = :store and note = :old
on conflict (store, note) do update set shown = usage.shown + excluded.shown,
    used = usage.used + excluded.used,
    last_used_at = case when excluded.last_used_at > usage.last_used_at
        then excluded.last_used_at else usage.last_used_at end
"""

#: Guard: the same message has not shown it under the new name too.
RENAME_INJECTIONS = """
update injection set note = :new where store = :store and note = :old
    and not exists (select 1 from injection other where other.agent = injection.agent
        and other.session = injection.session and other.message = injection.message
        and other.store = :store and other.note = :new)
"""

PRUNE_INJECTIONS = """
delete from injection where id in (
    select id from injection where shown_at < :before limit :batch)
"""

#: Moves all counters of a store's note to a note of another store, or adds them to its own.
MOVE_USAGE = """
insert into usage (store, note, shown, used, last_used_at)
select :into, :new, shown, used, last_used_at from usage where store = :store and note = :old
on conflict (store, note) do update set shown = usage.shown + excluded.shown,
    used = usage.used + excluded.used,
    last_used_at = case when excluded.last_used_at > usage.last_used_at
        then excluded.last_used_at else usage.last_used_at end
"""

#: Guard: the same message has not shown the other store's note too.
MOVE_INJECTIONS = """
update injection set store = :into, note = :new where store = :store and note = :old
    and not exists (select 1 from injection other where other.agent = injection.agent
        and other.session = injection.session and other.message = injection.message
        and other.store = :into and other.note = :new)
"""

MOVE_CANDIDATES = """
update candidate set store = :into, path = :new where store = :store and path = :old
"""

#: Candidates without a path, jobs, and when the store was consolidated.
MOVE_STORE = (
    "update candidate set store = :into where store = :store",
    "update job set project = :into where project = :store",
    "delete from consolidation where store = :store",
)

#: Says that a backfill is made for a session as it is now. Guard: none was, the session is not
#: excluded, and its transcript is still the one that was seen.
MAKE_BACKFILL = """
update rollout set made_fingerprint = fingerprint
where agent = :agent and session = :session and fingerprint = :fingerprint and excluded is null
    and (made_fingerprint is null or made_fingerprint <> fingerprint)
"""

#: Asks again for a backfill that ended; guard: it has. The cursor says what is left to read.
REOPEN_BACKFILL = """
update job set status = 'pending', run_at = :now, cutoff = :cutoff, failures = 0, crashes = 0,
    snoozes = 0, wait_reason = null, outcome_code = null, error_code = null, error_detail = null,
    finished_at = null, slice_first = null, slice_last = null, updated_at = :now
where idempotency_key = :key and status in ('completed', 'failed', 'cancelled')
"""

#: A backfill read its session to the end as it was when the job was made.
MINED = """
update rollout set mined_fingerprint = made_fingerprint
where agent = :agent and session = :session
"""

#: A backfill found nothing to read: should the transcript come back, it is made again.
UNMAKE = """
update rollout set made_fingerprint = null where agent = :agent and session = :session
"""

#: Whether a running backfill stands in the way: something better is due, and it is of the same
#: session, or no worker is free for it, or the backfill crashed before and so runs alone.
BETTER_WAITS = f"""
select 1 from job where status = 'pending' and {_DUE} and priority < :priority
    and (serial_key = :serial_key or :crashes > 0
        or ((select count(*) from job busy where busy.status = 'running') >= :workers
            and not exists (select 1 from job other
                where other.status = 'running' and other.serial_key = job.serial_key)))
limit 1
"""
