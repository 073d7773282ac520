"""The text of every statement that changes a job, by name; each says what guards it.

The dialect is what SQLite and PostgreSQL share, statuses are literals (a bound status costs the
planner its partial index), times are bound wall milliseconds. Each statement is a compare-and-set:
its row count tells whether it won.
"""

from __future__ import annotations

from memoryd.jobs.job import COLUMNS

#: What only the attempt that holds the lease may touch.
_FENCE = "id = :id and attempt = :attempt and status = 'running'"

#: A lease is over when its time has come, or when it ends further ahead than any lease is given
#: for: then the clock was stepped back under it.
_EXPIRED = "(lease_expires_at <= :now or lease_expires_at > :lease_horizon)"

#: The same for the time a job waits for: at most 25 hours ahead is meant.
_DUE = "(run_at <= :now or run_at > :run_horizon)"

#: Makes a job; guard: its idempotency key is new.
INSERT = f"""
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, max_failures, created_at, updated_at)
values (:id, :home, :kind, :idempotency_key, :serial_key, :agent, :session, :trigger, :reason,
    :cutoff, :payload, :priority, 'pending', :now, :max_failures, :now, :now)
on conflict (idempotency_key) do nothing
returning {COLUMNS}
"""

#: Makes an extract, or lets the one pending for the session read further. Guard: its uniqueness.
INSERT_EXTRACT = f"""
insert into job (id, home, kind, idempotency_key, serial_key, agent, session, trigger, reason,
    cutoff, payload, priority, status, run_at, max_failures, created_at, updated_at)
values (:id, :home, :kind, null, :serial_key, :agent, :session, :trigger, :reason,
    :cutoff, :payload, :priority, 'pending', :now, :max_failures, :now, :now)
on conflict (kind, agent, session) where status = 'pending' and kind = 'extract'
do update set cutoff = max(job.cutoff, excluded.cutoff), reason = excluded.reason,
    trigger = excluded.trigger, payload = excluded.payload, updated_at = excluded.updated_at
returning {COLUMNS}
"""

#: The next job a worker could take: due, its serial key free, and not beside a job that crashed.
NEXT_READY = f"""
select id, serial_key from job
where status = 'pending' and {_DUE}
    and not exists (select 1 from job other where other.status = 'running'
        and not (other.lease_expires_at <= :now or other.lease_expires_at > :lease_horizon)
        and (other.serial_key = job.serial_key or other.crashes > 0 or job.crashes > 0))
order by priority, run_at, id limit 1
"""

#: One given job, under the same conditions.
THIS_READY = f"""
select id, serial_key from job
where id = :id and status = 'pending' and {_DUE}
    and not exists (select 1 from job other where other.status = 'running'
        and not (other.lease_expires_at <= :now or other.lease_expires_at > :lease_horizon)
        and (other.serial_key = job.serial_key or other.crashes > 0 or job.crashes > 0))
"""

#: Takes it; guard: pending and due. The unique index on the serial key of running jobs decides
#: between two that got here together.
CLAIM = f"""
update job set status = 'running', attempt = attempt + 1, lease_owner = :owner,
    lease_expires_at = :lease_expires_at, wait_reason = null, started_at = :now,
    updated_at = :now
where id = :id and status = 'pending' and {_DUE}
returning {COLUMNS}
"""

#: Extends the lease; guard: the fence.
HEARTBEAT = f"""
update job set lease_expires_at = :lease_expires_at, updated_at = :now where {_FENCE}
"""

#: Running jobs whose lease is over, of one serial key or of all.
EXPIRED = f"""
select {COLUMNS} from job
where status = 'running' and (:all = 1 or {_EXPIRED})
    and (:serial_key is null or serial_key = :serial_key)
"""

#: Returns one of them, or gives it up; guard: the fence, and the lease is still the one seen.
RESCUE = f"""
update job set status = :status, failures = failures + 1, crashes = crashes + 1,
    error_code = 'attempt.crashed', error_detail = :detail, run_at = :run_at,
    lease_owner = null, lease_expires_at = null, updated_at = :now, finished_at = :finished_at
where {_FENCE} and lease_expires_at = :seen_lease
"""

#: Runs it later at no cost; guard: the fence.
SNOOZE = f"""
update job set status = 'pending', run_at = :run_at, wait_reason = :reason, error_detail = :detail,
    snoozes = snoozes + 1, lease_owner = null, lease_expires_at = null, updated_at = :now
where {_FENCE}
"""

#: Gives it back untouched (a drain that ran out of time); guard: the fence.
RELEASE = f"""
update job set status = 'pending', run_at = :now, lease_owner = null, lease_expires_at = null,
    updated_at = :now
where {_FENCE}
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

#: Calls it off; guard: not finished, and no plan of its own stands (then it is being written).
CANCEL = """
update job set status = 'cancelled', outcome_code = :code, wait_reason = null, lease_owner = null,
    lease_expires_at = null, updated_at = :now, finished_at = :now
where id = :id and status in ('pending', 'running')
    and not exists (select 1 from plan where plan.job_id = job.id)
"""

#: A person asks again; guard: failed or cancelled.
RETRY = """
update job set status = 'pending', failures = 0, crashes = 0, snoozes = 0, run_at = :now,
    wait_reason = null, outcome_code = null, error_code = null, error_detail = null,
    finished_at = null, slice_first = null, slice_last = null, updated_at = :now
where id = :id and status in ('failed', 'cancelled')
"""

#: Wakes jobs that waited for a provider; guard: pending with that reason.
WAKE = """
update job set run_at = :now, updated_at = :now
where status = 'pending' and wait_reason = :reason and run_at > :now
"""

#: Deletes what retention allows, oldest first, a bounded batch; guard: completed or cancelled.
PRUNE = """
delete from job where id in (
    select id from job
    where finished_at is not null and status in ('completed', 'cancelled')
    order by finished_at desc, id desc limit :batch offset :keep)
returning id
"""

#: Moves the cursor; guard: it stands where the slice began.
MOVE_CURSOR = """
update cursor set seq = :last, updated_at = :now
where agent = :agent and session = :session and seq = :before and :last >= seq
"""

#: Books a call; guard: the day's calls and tokens allow it.
RESERVE = """
update budget set calls = calls + 1, tokens = tokens + :tokens
where day = :day and provider = :provider
    and calls + 1 <= :max_calls and tokens + :tokens <= :max_tokens
"""

#: Lets one job through an open breaker; guard: its time has come (the next one is then later).
PROBE = """
update breaker set until = :next
where provider = :provider and state = 'open' and (until <= :now or until > :horizon)
"""
